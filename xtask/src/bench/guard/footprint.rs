//! Memory, disk and restart with many live windows.

use std::time::Duration;

use anyhow::{Context, Result};

use super::Bench;
use crate::{
    bench::{
        load::{self, BULK_WINDOWS, Check, Http1, Order, Plan, Resp, Script},
        report::{Table, grouped, mebibytes},
        servers::{
            self, Server,
            System::{self, RedisEverysec, TidegateProcess},
        },
    },
    clock,
};

struct Footprint {
    system: System,
    empty_bytes: u64,
    filled_bytes: u64,
    restarted_bytes: u64,
    disk_bytes: u64,
    restart: Duration,
    /// What the server itself counts as in use, where it does.
    own_count_bytes: Option<u64>,
}

/// Windows of a day: none ends during a run.
const PERIOD_MS: u64 = 86_400_000;
/// Records of operations live for 180 s; then the sweep needs a moment.
const RECORDS_GONE: Duration = Duration::from_secs(200);

pub(super) fn run(bench: &Bench) -> Result<String> {
    let rows = bench.settings.rows.next_multiple_of(BULK_WINDOWS);
    let measured = [TidegateProcess, RedisEverysec].map(|system| {
        measure(bench, system, rows).with_context(|| format!("measuring the footprint of {system}"))
    });
    let mut table = Table::new(&[
        "system",
        "resident memory",
        "bytes a window",
        "empty",
        "after a restart",
        "bytes a window, restarted",
        "disk",
        "disk bytes a window",
        "restart",
        "by its own count, bytes a window",
    ]);
    for footprint in measured {
        table.row(footprint?.cells(rows as f64));
    }
    Ok(format!(
        "### Memory, disk and restart\n\n{} live sliding windows. Resident memory and bytes a window are of the \
         whole process, program and all. Tidegate is looked at when its records of the operations that made the windows \
         have expired. A restart is from the start of the program after SIGKILL until `/readyz` or `PING` is \
         answered.\n\n{}",
        grouped(rows as f64),
        table.into_text()
    ))
}

fn measure(bench: &Bench, system: System, rows: u64) -> Result<Footprint> {
    let mut server = Server::start(system, &bench.tidegate, &bench.folder)?;
    let empty_bytes = server.process.resident_bytes()?;
    fill(&server, rows)?;
    if system.is_tidegate() && !bench.settings.quick {
        println!("waiting {} for the records of operations to expire", clock::in_words(RECORDS_GONE));
        clock::pause(RECORDS_GONE);
    }
    let filled_bytes = server.process.resident_bytes()?;
    let disk_bytes = server.disk_bytes()?;
    let own_count_bytes = if system.is_tidegate() { None } else { Some(used_memory(&server)?) };
    let restart = server.crash_and_restart()?;
    let restarted_bytes = server.process.resident_bytes()?;
    Ok(Footprint { system, empty_bytes, filled_bytes, restarted_bytes, disk_bytes, restart, own_count_bytes })
}

fn fill(server: &Server, rows: u64) -> Result<()> {
    let count = |rows: u64| usize::try_from(rows).context("counting rows");
    let plan = |connections, keys| Plan { connections, keys, order: Order::EachOnce };
    if server.system.is_tidegate() {
        let mut wire = Http1::bulk(PERIOD_MS, servers::SECRET)?;
        load::drive(&mut wire, server.address, plan(8, count(rows / BULK_WINDOWS)?))?;
    } else {
        let script = Script::load(server.address, Check::OneWindow)?;
        load::drive(&mut Resp::lasting(script, PERIOD_MS), server.address, plan(50, count(rows)?))?;
    }
    Ok(())
}

fn used_memory(server: &Server) -> Result<u64> {
    let answer = load::command(server.address, &["INFO", "memory"])?;
    let line = answer.lines().find_map(|line| line.strip_prefix("used_memory:"));
    line.and_then(|number| number.parse().ok()).context("reading used_memory")
}

impl Footprint {
    fn cells(&self, rows: f64) -> [String; 10] {
        let each = |bytes: u64| format!("{:.0}", bytes as f64 / rows);
        [
            self.system.to_string(),
            mebibytes(self.filled_bytes as f64),
            each(self.filled_bytes),
            mebibytes(self.empty_bytes as f64),
            mebibytes(self.restarted_bytes as f64),
            each(self.restarted_bytes),
            mebibytes(self.disk_bytes as f64),
            each(self.disk_bytes),
            format!("{:.2} s", self.restart.as_secs_f64()),
            self.own_count_bytes.map(each).unwrap_or_default(),
        ]
    }
}
