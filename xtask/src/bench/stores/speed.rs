//! Throughput, latency and CPU, scenario by scenario.

use std::{path::Path, sync::Arc};

use anyhow::{Context, Result};

use super::{
    Settings,
    contender::{Commit, Contender, Log, SYSTEMS, System},
    servers::Servers,
    turn::{self, Turn},
};
use crate::bench::{
    choice::{Choice, Choices},
    report::{Bound, Table, grouped, median},
};

/// Who calls, and for which rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scenario {
    choice: Choice,
    callers: usize,
}

/// What a store wants to reach beside the plain way on the same server.
struct Aim {
    scenario: Scenario,
    system: System,
    figure: fn(&Turn) -> f64,
    name: &'static str,
    bound: Bound,
}

/// All turns of one system in one scenario.
struct Series {
    system: System,
    turns: Vec<Turn>,
}

const CHOICES: [Choice; 3] = [Choice::Uniform, Choice::Zipf, Choice::Hot];
const CALLERS: [usize; 2] = [64, 512];

/// The tables of all scenarios, the aims first.
pub(super) async fn run(settings: &Settings, folder: &Path) -> Result<String> {
    let place = tempfile::Builder::new().prefix("stores-").tempdir_in(folder).context("making a folder")?;
    let choices = Arc::new(Choices::prepare(settings.keys)?);
    let mut servers = Servers::default();
    let mut contenders = Vec::new();
    for system in SYSTEMS.into_iter().filter(|system| settings.has(&system.to_string())) {
        let contender = Contender::start(system, &mut servers, place.path()).await;
        let contender = contender.with_context(|| format!("starting {system}"))?;
        println!("filling {system}");
        contender.prepare(&servers)?;
        contender.counter.fill(&choices.keys).await.with_context(|| format!("filling {system}"))?;
        contenders.push(contender);
    }
    let (mut aims_table, mut details) = (Table::new(&AIM_COLUMNS), String::new());
    let all = CHOICES.iter().flat_map(|&choice| CALLERS.map(|callers| Scenario { choice, callers }));
    for scenario in all.filter(|scenario| settings.wants(&scenario.title())) {
        println!("\n{}", scenario.title());
        let series = measure(settings, &contenders, &servers, &choices, scenario).await?;
        for aim in aims().iter().filter(|aim| aim.scenario == scenario) {
            if let Some(cells) = aim.cells(&series) {
                aims_table.row(cells);
            }
        }
        details.push_str(&format!("\n### {}\n\n{}", scenario.title(), table(&series)));
    }
    for contender in contenders {
        contender.stop().await;
    }
    Ok(format!("{}\n\n{}{details}", settings.about(), aims_table.into_text()))
}

async fn measure(
    settings: &Settings,
    contenders: &[Contender],
    servers: &Servers,
    choices: &Arc<Choices>,
    scenario: Scenario,
) -> Result<Vec<Series>> {
    let new = |contender: &Contender| Series { system: contender.system, turns: Vec::new() };
    let mut series: Vec<Series> = contenders.iter().map(new).collect();
    for _ in 0..settings.rounds {
        for (contender, series) in contenders.iter().zip(&mut series) {
            contender.prepare(servers)?;
            let work = (scenario.choice, scenario.callers);
            let turn = turn::take(&contender.counter, contender.server, choices, work, settings.turn()).await;
            let turn = turn.with_context(|| format!("measuring {}", contender.system))?;
            println!(
                "{:<45} {:>9.0}/s  p50 {:>7.0} us  p99 {:>7.0} us  {:>6.1} us of CPU",
                contender.system.to_string(),
                turn.per_second,
                turn.p50_us,
                turn.p99_us,
                turn.cpu()
            );
            series.turns.push(turn);
        }
    }
    Ok(series)
}

fn aims() -> Vec<Aim> {
    let per_second: fn(&Turn) -> f64 = |turn| turn.per_second;
    let aim = |choice, callers, system, name, figure, bound| {
        let scenario = Scenario { choice, callers };
        Aim { scenario, system, figure, name, bound }
    };
    let mut aims = Vec::new();
    for (commit, spread) in [(Commit::On, 5.0), (Commit::Off, 2.5)] {
        for (choice, least) in [(Choice::Uniform, spread), (Choice::Zipf, spread), (Choice::Hot, 15.0)] {
            let bound = Bound::AtLeast(least);
            aims.push(aim(choice, 512, System::Postgres(commit), "updates/s", per_second, bound));
        }
    }
    for log in [Log::Everysec, Log::Always] {
        let system = System::Redis(log);
        let both = |callers| [(Choice::Uniform, callers), (Choice::Zipf, callers)];
        for (choice, callers) in CALLERS.into_iter().flat_map(both) {
            aims.push(aim(choice, callers, system, "updates/s", per_second, Bound::AtLeast(0.8)));
            aims.push(aim(choice, callers, system, "CPU an update", Turn::cpu, Bound::AtMost(1.0)));
        }
    }
    aims
}

const AIM_COLUMNS: [&str; 5] =
    ["aim, the store's figure over the plain one's", "wanted", "reached", "rounds", ""];

fn table(series: &[Series]) -> String {
    let mut table = Table::new(&[
        "system",
        "updates/s",
        "p50 ms",
        "p99 ms",
        "client CPU µs",
        "server CPU µs",
        "updates/s over the plain one's",
        "CPU over the plain one's",
    ]);
    for one in series {
        let middle = |figure: fn(&Turn) -> f64| median(one.turns.iter().map(figure));
        let over = |figure| {
            one.over_plain(series, figure).map(|ratios| format!("{:.2}", median(ratios))).unwrap_or_default()
        };
        table.row([
            one.system.to_string(),
            grouped(middle(|turn| turn.per_second)),
            format!("{:.3}", middle(|turn| turn.p50_us) / 1000.0),
            format!("{:.3}", middle(|turn| turn.p99_us) / 1000.0),
            format!("{:.1}", middle(|turn| turn.client_cpu)),
            format!("{:.1}", middle(|turn| turn.server_cpu)),
            over(|turn| turn.per_second),
            over(Turn::cpu),
        ]);
    }
    table.into_text()
}

impl Series {
    /// Round by round, where the plain way was measured too.
    fn over_plain(&self, all: &[Self], figure: fn(&Turn) -> f64) -> Option<Vec<f64>> {
        let plain = all.iter().find(|other| Some(other.system) == self.system.plain())?;
        let rounds = self.turns.iter().zip(&plain.turns);
        Some(rounds.map(|(ours, theirs)| figure(ours) / figure(theirs)).collect())
    }
}

impl Aim {
    fn cells(&self, series: &[Series]) -> Option<[String; 5]> {
        let ours = series.iter().find(|one| one.system == self.system)?;
        let ratios = ours.over_plain(series, self.figure)?;
        let what = format!("{}: {}, {}", self.scenario.title(), self.name, self.system);
        Some(self.bound.judge(what, &ratios))
    }
}

impl Scenario {
    fn title(self) -> String {
        format!("{}, {} callers", self.choice, self.callers)
    }
}

impl Settings {
    fn wants(&self, title: &str) -> bool {
        self.scenario.as_ref().is_none_or(|part| title.contains(part.as_str()))
    }

    fn about(&self) -> String {
        format!(
            "{} rows. An update counts one up in a fixed window: it reads a row, decides and writes it. CPU is in µs \
             an update, of this process (callers and driver) and of the server with its children. The plain way on \
             PostgreSQL is a transaction a call, `SELECT … FOR UPDATE` and an upsert with prepared statements, on a \
             pool of 16 connections; on Redis an EVALSHA a call, on one multiplexed connection. Servers are the \
             distribution's with their defaults, but for a buffer pool of 512 MiB in MariaDB. {} rounds of {} s, the \
             systems in turn; medians, and medians of the ratios within a round.",
            grouped(self.keys as f64),
            self.rounds,
            self.seconds
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_aim_is_of_a_scenario_and_a_store_beside_a_plain_one() {
        for aim in aims() {
            let Scenario { choice, callers } = aim.scenario;
            assert!(CHOICES.contains(&choice) && CALLERS.contains(&callers));
            let plain = aim.system.plain().unwrap();
            assert!(SYSTEMS.contains(&aim.system) && SYSTEMS.contains(&plain), "{}", aim.system);
        }
    }

    #[test]
    fn ratios_are_within_rounds() {
        let series = |system, per_second: [f64; 3]| Series {
            system,
            turns: per_second.map(|per_second| Turn { per_second, ..Turn::default() }).to_vec(),
        };
        let all = [
            series(System::Redis(Log::Always), [10.0, 40.0, 90.0]),
            series(System::PlainRedis(Log::Always), [10.0, 20.0, 30.0]),
            series(System::Memory, [1.0; 3]),
        ];
        assert_eq!(all[0].over_plain(&all, |turn| turn.per_second), Some(vec![1.0, 2.0, 3.0]));
        assert_eq!(all[2].over_plain(&all, |turn| turn.per_second), None);
    }
}
