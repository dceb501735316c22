//! Throughput, latency and CPU, scenario by scenario.

use anyhow::Result;

use super::{
    Bench,
    rounds::{self, Series, Transport, Turn, Work},
};
use crate::bench::{
    load::Check,
    report::{Bound, Table, grouped, median},
    servers::System::{
        self, RedisAlways, RedisEverysec, RedisMemory, TidegateFair, TidegateFsync, TidegateProcess,
    },
};

struct Scenario {
    title: &'static str,
    work: Work,
    systems: &'static [System],
    aims: &'static [Aim],
}

/// What Tidegate, the first system of a scenario, wants to reach beside another.
struct Aim {
    figure: Figure,
    beside: System,
    bound: Bound,
}

#[derive(Clone, Copy)]
enum Figure {
    PerSecond,
    ServerCpu,
    P50,
}

const SCENARIOS: [Scenario; 8] = [
    Scenario {
        title: "One sliding window, 50 connections, survives the process",
        work: one_window(50),
        systems: &[TidegateProcess, RedisEverysec, RedisMemory],
        aims: &[
            Aim { figure: Figure::PerSecond, beside: RedisEverysec, bound: Bound::AtLeast(1.0) },
            Aim { figure: Figure::ServerCpu, beside: RedisMemory, bound: Bound::AtMost(1.0) },
        ],
    },
    Scenario {
        title: "One sliding window, 50 connections, on the disk",
        work: one_window(50),
        systems: &[TidegateFsync, RedisAlways],
        aims: &[Aim { figure: Figure::PerSecond, beside: RedisAlways, bound: Bound::AtLeast(1.5) }],
    },
    Scenario {
        title: "One sliding window, 500 connections, on the disk",
        work: one_window(500),
        systems: &[TidegateFsync, RedisAlways],
        aims: &[Aim { figure: Figure::PerSecond, beside: RedisAlways, bound: Bound::AtLeast(1.5) }],
    },
    Scenario {
        title: "Three windows, all or none, 50 connections, survives the process",
        work: Work { check: Check::ThreeWindows, transport: Transport::Http1, connections: 50 },
        systems: &[TidegateProcess, RedisEverysec],
        aims: &[Aim { figure: Figure::PerSecond, beside: RedisEverysec, bound: Bound::AtLeast(1.5) }],
    },
    Scenario {
        title: "One connection, survives the process",
        work: one_window(1),
        systems: &[TidegateProcess, RedisEverysec],
        aims: &[Aim { figure: Figure::P50, beside: RedisEverysec, bound: Bound::AtMost(2.0) }],
    },
    Scenario {
        title: "One connection, on the disk",
        work: one_window(1),
        systems: &[TidegateFsync, RedisAlways],
        aims: &[Aim { figure: Figure::P50, beside: RedisAlways, bound: Bound::AtMost(2.0) }],
    },
    Scenario {
        title: "HTTP/2, 10 connections of 5 streams, survives the process",
        work: Work { check: Check::OneWindow, transport: Transport::Http2, connections: 50 },
        systems: &[TidegateProcess, RedisEverysec],
        aims: &[],
    },
    Scenario {
        title: "Source, /24 and principal charged with one sliding window, 50 connections",
        work: one_window(50),
        systems: &[TidegateFair, TidegateProcess],
        aims: &[Aim { figure: Figure::PerSecond, beside: TidegateProcess, bound: Bound::AtLeast(0.7) }],
    },
];

const fn one_window(connections: usize) -> Work {
    Work { check: Check::OneWindow, transport: Transport::Http1, connections }
}

/// The tables of all scenarios, the aims first.
pub(super) fn run(bench: &Bench) -> Result<String> {
    let mut aims =
        Table::new(&["aim, the first system's figure over the other's", "wanted", "reached", "rounds", ""]);
    let mut details = String::new();
    let wanted =
        |title: &str| bench.settings.scenario.as_ref().is_none_or(|part| title.contains(part.as_str()));
    for scenario in SCENARIOS.iter().filter(|scenario| wanted(scenario.title)) {
        println!("\n{}", scenario.title);
        let series = rounds::measure(bench, scenario.work, scenario.systems)?;
        for aim in scenario.aims {
            aims.row(aim.cells(scenario.title, &series));
        }
        details.push_str(&format!("\n#### {}\n\n{}", scenario.title, table(&series)));
    }
    let about = format!(
        "### Speed\n\n{} keys at random; {} rounds of {} s each, the systems in turn; medians, and medians of the \
         ratios within a round. CPU is what the server's process used until its next turn, so work in the \
         background counts. Tidegate verifies a signature, parses JSON and remembers each operation for three \
         minutes; Redis runs the script by EVALSHA and does none of that.\n\n",
        grouped(bench.settings.keys as f64),
        bench.settings.rounds,
        bench.settings.round_seconds,
    );
    Ok(about + &aims.into_text() + &details)
}

fn table(series: &[Series]) -> String {
    let mut table = Table::new(&[
        "system",
        "checks/s",
        "p50 ms",
        "p99 ms",
        "server CPU s / 100 000",
        "client CPU s / 100 000",
        "the first's checks/s over it",
        "the first's CPU over it",
    ]);
    for (place, one) in series.iter().enumerate() {
        let middle = |figure: fn(&Turn) -> f64| median(one.turns.iter().map(figure));
        let over = |figure| if place == 0 { String::new() } else { ratio_text(figure, series, one) };
        table.row([
            one.system.to_string(),
            grouped(middle(|turn| turn.per_second)),
            format!("{:.3}", middle(|turn| turn.p50_us) / 1000.0),
            format!("{:.3}", middle(|turn| turn.p99_us) / 1000.0),
            format!("{:.2}", middle(|turn| turn.server_cpu)),
            format!("{:.2}", middle(|turn| turn.client_cpu)),
            over(Figure::PerSecond),
            over(Figure::ServerCpu),
        ]);
    }
    table.into_text()
}

fn ratio_text(figure: Figure, series: &[Series], other: &Series) -> String {
    format!("{:.2}", median(ratios(figure, &series[0], other)))
}

/// The first's figure over the second's, round by round.
fn ratios(figure: Figure, first: &Series, second: &Series) -> Vec<f64> {
    first.turns.iter().zip(&second.turns).map(|(one, two)| figure.of(one) / figure.of(two)).collect()
}

impl Figure {
    const fn of(self, turn: &Turn) -> f64 {
        match self {
            Self::PerSecond => turn.per_second,
            Self::ServerCpu => turn.server_cpu,
            Self::P50 => turn.p50_us,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::PerSecond => "checks/s",
            Self::ServerCpu => "server CPU a check",
            Self::P50 => "p50",
        }
    }
}

impl Aim {
    fn cells(&self, title: &str, series: &[Series]) -> [String; 5] {
        let other = series.iter().find(|other| other.system == self.beside);
        let ratios = other.map(|other| ratios(self.figure, &series[0], other)).unwrap_or_default();
        let title = format!("{title}: {}, beside {}", self.figure.name(), self.beside);
        self.bound.judge(title, &ratios)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(system: System, per_second: &[f64]) -> Series {
        let turn = |&per_second: &f64| Turn { per_second, ..Turn::default() };
        Series { system, turns: per_second.iter().map(turn).collect() }
    }

    #[test]
    fn aims_compare_within_rounds() {
        let both = [series(TidegateProcess, &[10.0, 40.0, 90.0]), series(RedisEverysec, &[10.0, 20.0, 30.0])];
        let aim = Aim { figure: Figure::PerSecond, beside: RedisEverysec, bound: Bound::AtLeast(1.5) };
        assert_eq!(aim.cells("t", &both)[1..], ["≥ 1.5", "2.00", "1.00 to 3.00", "reached"]);
        let aim = Aim { bound: Bound::AtMost(1.5), ..aim };
        assert_eq!(aim.cells("t", &both)[4], "**falls short**");
    }

    #[test]
    fn every_scenario_puts_tidegate_first_and_aims_at_a_system_it_has() {
        for scenario in &SCENARIOS {
            assert!(scenario.systems[0].is_tidegate(), "{}", scenario.title);
            assert!(
                scenario.aims.iter().all(|aim| scenario.systems.contains(&aim.beside)),
                "{}",
                scenario.title
            );
        }
    }
}
