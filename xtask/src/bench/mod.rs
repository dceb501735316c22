//! Measures, and writes what it measured into the documentation. Nothing here asserts a timing.

mod admission;
mod choice;
mod client;
mod engine;
mod guard;
mod histogram;
mod ingress;
mod load;
mod machine;
mod process;
mod random;
mod replay;
mod report;
mod servers;
mod stores;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::shell;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// The whole server under signed requests, beside Redis running an equivalent script, in one run.
    Guard(guard::Settings),
    /// The proxy with its defense, beside nginx with `limit_req`, on one core.
    Ingress(ingress::Settings),
    /// The embedded engine alone, beside bare writes to the same disk.
    Engine(engine::Settings),
    /// Admission in this process, beside the `governor` crate; and HTTP beside a flood of datagrams.
    Admission(admission::Settings),
    /// The Rust client, beside the bare HTTP exchange.
    Client(client::Settings),
    /// A replay of a million recorded requests, by how many clients they are of.
    Replay(replay::Settings),
    /// Every store through its driver, beside one plain transaction a call on the same server.
    Stores(stores::Settings),
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.what {
        What::Guard(settings) => guard::run(settings),
        What::Ingress(settings) => ingress::run(settings),
        What::Engine(settings) => engine::run(settings),
        What::Admission(settings) => admission::run(settings),
        What::Client(settings) => client::run(settings),
        What::Replay(settings) => replay::run(settings),
        What::Stores(settings) => stores::run(settings),
    }
}

/// Where a benchmark keeps its files: on the disk that is to be measured.
fn folder(chosen: Option<&Path>) -> Result<PathBuf> {
    let folder = chosen.map_or_else(|| shell::target_directory().join("bench"), Path::to_path_buf);
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    Ok(folder)
}
