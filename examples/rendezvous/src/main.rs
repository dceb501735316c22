//! The rendezvous as a program: the service, two players, and a demonstration of all three.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use rendezvous::{
    credentials::Credentials,
    edge::{Edge, System},
    hex,
    peer::{self, Api},
    run::{self, Running},
    service::{Limits, Service},
};
use tokio::{net::UdpSocket, sync::watch};

/// Two players find each other's address and play directly.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves HTTP and UDP until it is interrupted.
    Serve(Serve),
    /// Lists a game, waits for a joiner, and meets it.
    Host(Player),
    /// Joins the newest game, and meets its host.
    Join(Player),
    /// A service and two players on this machine: they meet, and it ends.
    Demo,
}

#[derive(Args)]
struct Serve {
    /// Where HTTP is served.
    #[arg(long, default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
    /// Where datagrams are taken.
    #[arg(long, default_value = "127.0.0.1:3478")]
    mediator: SocketAddr,
    /// The file of keys and principals; SIGHUP reads it again.
    #[arg(long)]
    credentials: PathBuf,
    /// The admission profile; the built-in one without it.
    #[arg(long)]
    profile: Option<PathBuf>,
}

#[derive(Args)]
struct Player {
    /// The service's HTTP side.
    #[arg(long, default_value = "http://127.0.0.1:8090")]
    url: String,
    /// Its UDP side.
    #[arg(long, default_value = "127.0.0.1:3478")]
    mediator: SocketAddr,
    /// The socket to play on.
    #[arg(long, default_value = "0.0.0.0:0")]
    bind: SocketAddr,
    /// The bearer token.
    #[arg(long, env = "RENDEZVOUS_TOKEN", hide_env_values = true)]
    token: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let done = match Cli::parse().command {
        Command::Serve(serve) => serve.run().await,
        Command::Host(player) => player.run(Side::Host).await,
        Command::Join(player) => player.run(Side::Join).await,
        Command::Demo => demo().await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Clone, Copy)]
enum Side {
    Host,
    Join,
}

impl Serve {
    async fn run(self) -> anyhow::Result<()> {
        let service = Arc::new(Service::new(Limits::default(), self.credentials()?));
        let profile = run::profile(self.profile.as_deref())?;
        let shutdown = watch::Sender::new(false);
        let running =
            Running::start(Arc::clone(&service), &profile, self.listen, self.mediator, shutdown.subscribe())
                .await?;
        say(&format!("serving http on {} and datagrams on {}", running.http, running.mediator));
        let mut hang_up = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?;
        loop {
            tokio::select! {
                interrupted = tokio::signal::ctrl_c() => {
                    interrupted?;
                    shutdown.send_replace(true);
                    return running.ended().await;
                }
                _ = hang_up.recv() => match self.credentials() {
                    Ok(credentials) => service.replace_credentials(credentials),
                    Err(error) => tracing::error!("the credentials in force stay: {error:#}"),
                },
            }
        }
    }

    fn credentials(&self) -> anyhow::Result<Credentials> {
        let path = &self.credentials;
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        Credentials::read(&text).with_context(|| format!("in {}", path.display()))
    }
}

impl Player {
    async fn run(self, side: Side) -> anyhow::Result<()> {
        let socket = UdpSocket::bind(self.bind).await.context("opening the socket to play on")?;
        let api = Api::new(&self.url, &self.token);
        let met = match side {
            Side::Host => peer::host(&api, self.mediator, &socket).await?,
            Side::Join => peer::join(&api, self.mediator, &socket).await?,
        };
        say(&format!("met the other player at {met}"));
        Ok(())
    }
}

/// A service on ports of its own with credentials made for it, and two players of one tenant.
async fn demo() -> anyhow::Result<()> {
    let random =
        || System.random().map(|bytes| hex::text(&bytes)).context("asking the system for random bytes");
    let (key, host, joiner) = (random()?, random()?, random()?);
    let credentials = Credentials::read(&serde_json::to_string(&serde_json::json!({
        "keys": [{ "id": 1, "secret": key }],
        "principals": [
            { "tenant": "demo", "name": "host", "tokens": [host] },
            { "tenant": "demo", "name": "joiner", "tokens": [joiner] },
        ],
    }))?)?;
    let service = Arc::new(Service::new(Limits::default(), credentials));
    let shutdown = watch::Sender::new(false);
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    let running = Running::start(service, &run::profile(None)?, here, here, shutdown.subscribe()).await?;
    say(&format!("serving http on {} and datagrams on {}", running.http, running.mediator));
    let player = |token| Player {
        url: format!("http://{}", running.http),
        mediator: running.mediator,
        bind: here,
        token,
    };
    let (hosted, joined) = tokio::join!(player(host).run(Side::Host), player(joiner).run(Side::Join));
    hosted.context("the host")?;
    joined.context("the joiner")?;
    shutdown.send_replace(true);
    running.ended().await
}

#[expect(clippy::print_stdout, reason = "what a person or a test at the terminal waits for")]
fn say(text: &str) {
    println!("{text}");
}
