//! `tidegate demo`: short stories against a running server, with what was admitted and why: four of the guard
//! store, and one of an app with visitors.

use std::{io::Write, net::SocketAddr, time::Duration};

use clap::Args;
use thiserror::Error;
use tidegate_client::{GuardClient, GuardUnavailable, operation_id};
use tidegate_protocol::{
    identity::{Digest, Purpose},
    name::{Family, ReceiptId},
    request::{Budget, Command, Fairness, Request, Window},
    response::{CommandResult, Response},
};

use super::{
    call::from_here,
    visitors::{self, Visit},
};
use crate::config::Loaded;

/// What `tidegate demo` takes.
#[derive(Debug, Clone, Copy, Args)]
pub struct DemoArgs {
    /// How long visitors come to the app; 0 leaves them out
    #[arg(long, value_name = "SECONDS", default_value_t = 45, value_parser = clap::value_parser!(u64).range(..=3600))]
    pub seconds: u64,
}

/// Why the demo ended early.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DemoError {
    /// No answer.
    #[error(transparent)]
    Unavailable(#[from] GuardUnavailable),
    /// An answer that does not fit the command.
    #[error("the guard store answered something else than was asked")]
    Unexpected,
    /// The output is gone.
    #[error("writing")]
    Output(#[from] std::io::Error),
}

/// Tells the stories. Everything they leave in the store expires within a quarter of an hour.
///
/// # Errors
/// The guard store does not answer.
pub async fn demo(
    arguments: DemoArgs,
    client: &GuardClient,
    loaded: &Loaded,
    out: &mut dyn Write,
) -> Result<(), DemoError> {
    // Names of this run alone, so that it can be told again at once.
    let run = operation_id()?.as_str().to_owned();
    let stage = Stage { client, run };
    stage.login_under_attack(out).await?;
    stage.replayed_webhook(out).await?;
    stage.greedy_client(out).await?;
    stage.lost_answer(out).await?;
    if arguments.seconds > 0 {
        app_with_visitors(Duration::from_secs(arguments.seconds), loaded, out).await?;
    }
    writeln!(out, "\nThe same from the shell: tidegate call --help, tidegate apps --help")?;
    Ok(())
}

async fn app_with_visitors(lasts: Duration, loaded: &Loaded, out: &mut dyn Write) -> Result<(), DemoError> {
    let configuration = loaded.regardless();
    let app: SocketAddr = from_here(configuration.ingress.listen);
    let scheme = if configuration.admin.tls.is_some() { "https" } else { "http" };
    writeln!(
        out,
        "\n5. An app with visitors\n   For {} s six people look at {app}, and a scraper takes all it can get.\n   \
         Watch them in the dashboard: {scheme}://{}/",
        lasts.as_secs(),
        from_here(configuration.admin.listen),
    )?;
    out.flush()?;
    if visitors::visit(Visit { app, lasts }, out).await?.is_none() {
        writeln!(out, "   No app answers there, so nobody came.")?;
        return Ok(());
    }
    writeln!(
        out,
        "   Where the scraper was not refused, nothing is enforced yet. See what a limit would have done:\n     \
         tidegate apps abuse replay demo --rps 3 --burst 10\n   and then put it in force, and come again:\n     \
         tidegate apps abuse set demo --rps 3 --burst 10\n     \
         tidegate apps abuse enforce demo\n     \
         tidegate demo"
    )?;
    Ok(())
}

struct Stage<'a> {
    client: &'a GuardClient,
    run: String,
}

const QUARTER_HOUR_MS: u64 = 15 * 60 * 1000;

impl Stage<'_> {
    async fn login_under_attack(&self, out: &mut dyn Write) -> Result<(), DemoError> {
        writeln!(
            out,
            "\n1. A login under attack\n   Each attempt reserves 1 of 5 for its source and 1 of 8 for its account, before the \
             password is checked;\n   a right password gives its own reservation back."
        )?;
        let (mut checked, mut by_source, mut by_account) = (0, 0, 0);
        for attempt in 0..24 {
            match self.attempt(&format!("203.0.113.{}", attempt / 8), "alice").await? {
                Attempt::Reserved(_) => checked += 1,
                Attempt::Denied { by_account: false } => by_source += 1,
                Attempt::Denied { by_account: true } => by_account += 1,
            }
        }
        writeln!(
            out,
            "   24 guesses at alice's password from 3 addresses: {checked} checked, {by_source} refused for their source,\n   \
             {by_account} refused for the account."
        )?;
        let Attempt::Reserved(receipt) = self.attempt("192.0.2.7", "bob").await? else {
            return Err(DemoError::Unexpected);
        };
        let refund = self.one("password", "login", Command::refund(receipt)).await?;
        let CommandResult::Refund { refunded, .. } = refund else { return Err(DemoError::Unexpected) };
        writeln!(
            out,
            "   bob, from his own address, logs in at the first try; his reservation was {}.",
            if refunded { "given back" } else { "kept" }
        )?;
        Ok(())
    }

    async fn replayed_webhook(&self, out: &mut dyn Write) -> Result<(), DemoError> {
        writeln!(
            out,
            "\n2. A webhook, delivered five times\n   The first delivery claims its id for ten minutes (kv.set nx)."
        )?;
        for delivery in 1..=5 {
            let claim = Command::claim(self.key("evt_1001"), format!("delivery {delivery}"), 600_000);
            let became = match self.one("replay", "webhooks", claim).await? {
                CommandResult::Set { written: true, .. } => "processed".to_owned(),
                CommandResult::Set { current, .. } => {
                    format!("dropped, {} has it", current.unwrap_or_else(|| "somebody".to_owned()))
                }
                _ => return Err(DemoError::Unexpected),
            };
            writeln!(out, "   delivery {delivery}: {became}")?;
        }
        Ok(())
    }

    async fn greedy_client(&self, out: &mut dyn Write) -> Result<(), DemoError> {
        writeln!(
            out,
            "\n3. An API client over its limit\n   10 a second and 15 a minute, charged together or not at all (win.hit)."
        )?;
        let mut admitted = 0;
        let mut last = None;
        for _ in 0..30 {
            let windows = [
                Window::bucket(self.key("burst"), 10, 1000),
                Window::sliding(self.key("minute"), 15, 60_000),
            ];
            let result = self.one("proxy", "api:client-7", Command::hit(windows)).await?;
            let CommandResult::Hit { allowed, windows, retry_after_ms } = result else {
                return Err(DemoError::Unexpected);
            };
            admitted += u32::from(allowed);
            if !allowed {
                last = Some((windows, retry_after_ms));
            }
        }
        writeln!(out, "   30 requests: {admitted} admitted, {} refused.", 30 - admitted)?;
        if let Some((windows, Some(wait_ms))) = last {
            let used: Vec<String> =
                windows.iter().map(|window| format!("{} of {}", window.used, window.limit)).collect();
            writeln!(
                out,
                "   the last refusal: used {}; it may come back in {wait_ms} ms.",
                used.join(" and ")
            )?;
        }
        Ok(())
    }

    async fn lost_answer(&self, out: &mut dyn Write) -> Result<(), DemoError> {
        writeln!(out, "\n4. An answer that was lost\n   The caller sends the same operation id again.")?;
        let count = Command::increment(self.key("orders"), 1, QUARTER_HOUR_MS);
        let request = self.request("offline", "shop", count)?;
        for sent in ["sent", "sent again"] {
            let response = self.client.run(&request).await?;
            let replayed = response.steps.first().is_some_and(|step| step.replayed);
            let CommandResult::Increment { value, .. } = single(response)? else {
                return Err(DemoError::Unexpected);
            };
            let how = if replayed { "as answered before: nothing was charged twice" } else { "counted" };
            writeln!(out, "   {sent}: {value} ({how})")?;
        }
        Ok(())
    }

    async fn attempt(&self, source: &str, account: &str) -> Result<Attempt, DemoError> {
        let budgets = [
            Budget::new(self.key(source), 5, QUARTER_HOUR_MS),
            Budget::new(self.key(account), 8, QUARTER_HOUR_MS),
        ];
        match self.one("password", "login", Command::reserve(budgets)).await? {
            CommandResult::Reserved { receipt: Some(receipt), .. } => Ok(Attempt::Reserved(receipt)),
            CommandResult::NotReserved { denied_by, .. } => {
                Ok(Attempt::Denied { by_account: denied_by.contains(&1) })
            }
            _ => Err(DemoError::Unexpected),
        }
    }

    async fn one(&self, family: &str, partition: &str, command: Command) -> Result<CommandResult, DemoError> {
        let request = self.request(family, partition, command)?;
        single(self.client.run(&request).await?)
    }

    fn request(&self, family: &str, partition: &str, command: Command) -> Result<Request, DemoError> {
        let family = Family::parse(family).map_err(|_| DemoError::Unexpected)?;
        let fairness = Fairness::default()
            .source(self.client.digest(Purpose::Source, "192.0.2.7/32"))
            .principal(self.client.digest(Purpose::Principal, "demo"));
        let partition = self.client.digest(Purpose::Partition, &format!("demo:{}:{partition}", self.run));
        Ok(Request::new(operation_id()?, family).fairness(fairness).step(partition, [command]))
    }

    fn key(&self, name: &str) -> Digest {
        self.client.digest(Purpose::Key, name)
    }
}

/// What became of a login attempt, before its password was looked at.
enum Attempt {
    Reserved(ReceiptId),
    Denied { by_account: bool },
}

fn single(response: Response) -> Result<CommandResult, DemoError> {
    let step = response.steps.into_iter().next();
    step.and_then(|step| step.results.into_iter().next()).ok_or(DemoError::Unexpected)
}
