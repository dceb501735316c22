//! Sending what was asked for, and saying what came of it.

use std::{fs, io::Write, time::Duration};

use thiserror::Error;
use tidegate_client::{ConfigurationFault, GuardClient, GuardUnavailable, operation_id};
use tidegate_protocol::{
    identity::{Pepper, Purpose, digest},
    name::{Family, InvalidName, OperationId, ReceiptId},
    request::{self, Algorithm, Budget, Fairness, Request, Window},
};
use tidegate_store::clock::wall_ms;

use super::{
    AlgorithmWord, Call, ClientCredentials, ClientError, Command, Intent, Output, Payload, SetMode, Target,
    answer, client_credentials, curl,
};
use crate::{
    config::{Hidden, Loaded},
    process::EXIT_GOOD,
};

/// Why nothing was sent, or nothing came back.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The configuration and the data directory don't make a client.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// There is no secret to sign with.
    #[error(
        "there is no secret to sign with: run this where `tidegate serve` was started, or set client.secret \
         (TIDEGATE_CLIENT_SECRET)"
    )]
    NoSecret,
    /// A file that can't be read.
    #[error("reading {path}")]
    File {
        /// Which.
        path: String,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// A name that the protocol does not take.
    #[error("{flag} {fault}")]
    Name {
        /// The flag or the argument.
        flag: &'static str,
        /// What it must be.
        fault: InvalidName,
    },
    /// A request out of bounds.
    #[error("the request is out of bounds: {0}")]
    Request(#[from] request::BadRequest),
    /// The URL.
    #[error(transparent)]
    Url(#[from] ConfigurationFault),
    /// No answer.
    #[error(transparent)]
    Unavailable(#[from] GuardUnavailable),
    /// The output is gone.
    #[error("writing the answer")]
    Output(#[from] std::io::Error),
}

/// Carries out a call and answers the exit code.
///
/// # Errors
/// Nothing was sent, or nothing came back in time.
pub async fn send(call: Call, loaded: &Loaded, out: &mut dyn Write) -> Result<u8, SendError> {
    let context = Context::of(loaded)?;
    let body = match &call.payload {
        Payload::File(path) => {
            fs::read(path).map_err(|cause| SendError::File { path: path.display().to_string(), cause })?
        }
        Payload::Intent(intent) => context.request(intent)?.to_json()?,
    };
    if call.output == Output::Curl {
        writeln!(out, "{}", context.curl(&call.target, &body)?)?;
        return Ok(EXIT_GOOD);
    }
    let raw = context.client(&call.target)?.send_raw(body).await?;
    if call.output == Output::Json {
        out.write_all(&raw.body)?;
        writeln!(out)?;
        return Ok(answer::exit_code(&raw));
    }
    write!(out, "{}", answer::for_people(&raw, &call.payload))?;
    Ok(answer::exit_code(&raw))
}

/// A client of the guard store that the configuration and the data directory name, for other verbs.
///
/// # Errors
/// A secret is missing, or the URL can't be used.
pub fn configured_client(loaded: &Loaded) -> Result<GuardClient, SendError> {
    Context::of(loaded)?.client(&Target::Configured)
}

/// A client of the guard store at `url`, with the secrets of the configuration and the data directory.
///
/// # Errors
/// A secret is missing, or the URL can't be used.
pub fn client_at(url: &Hidden, loaded: &Loaded) -> Result<GuardClient, SendError> {
    Context::of(loaded)?.client(&Target::Url(url.expose().to_owned()))
}

/// What the configuration and the data directory give.
struct Context(ClientCredentials);

impl Context {
    fn of(loaded: &Loaded) -> Result<Self, SendError> {
        Ok(Self(client_credentials(loaded)?))
    }

    fn url<'a>(&'a self, target: &'a Target) -> &'a str {
        match target {
            Target::Url(url) => url,
            _ => self.0.url.expose(),
        }
    }

    fn client(&self, target: &Target) -> Result<GuardClient, SendError> {
        let client = match target {
            Target::Socket(path) => GuardClient::over_socket(path, &self.0.pepper),
            _ => {
                let secret = self.0.secret.clone().ok_or(SendError::NoSecret)?;
                GuardClient::new(self.url(target), secret, &self.0.pepper)?
            }
        };
        Ok(client.with_timeout(Duration::from_millis(self.0.timeout_ms)))
    }

    fn request(&self, intent: &Intent) -> Result<Request, SendError> {
        let keys = Pepper::new(&self.0.pepper);
        let identities = Pepper::new(&self.0.fairness_pepper);
        let name = |flag| move |fault| SendError::Name { flag, fault };
        let op = match &intent.operation {
            Some(op) => OperationId::parse(op).map_err(name("--op"))?,
            None => operation_id()?,
        };
        let family = Family::parse(&intent.family).map_err(name("--family"))?;
        let identity = |purpose, value: &str| digest(&identities, purpose, value);
        let mut fairness = Fairness::default();
        if let Some(source) = intent.source {
            fairness = fairness.source(identity(Purpose::Source, &source.source()));
            for network in source.networks() {
                fairness = fairness.network(network.prefix, identity(Purpose::Network, &network.text));
            }
        }
        if let Some(principal) = &intent.principal {
            fairness = fairness.principal(identity(Purpose::Principal, principal));
        }
        let partition = digest(&keys, Purpose::Partition, &intent.partition);
        let request =
            Request::new(op, family).fairness(fairness).step(partition, [command(&intent.command, &keys)?]);
        Ok(if intent.good { request.good() } else { request })
    }

    /// The same exchange for curl, signed now: it is accepted for a minute.
    fn curl(&self, target: &Target, body: &[u8]) -> Result<String, SendError> {
        let body = String::from_utf8_lossy(body);
        if let Target::Socket(path) = target {
            return Ok(curl::over_socket(path, &body));
        }
        let secret = self.0.secret.as_ref().ok_or(SendError::NoSecret)?;
        Ok(curl::signed(self.url(target), secret, wall_ms(), &body))
    }
}

fn command(command: &Command, pepper: &Pepper) -> Result<request::Command, SendError> {
    let key = |name: &str| digest(pepper, Purpose::Key, name);
    Ok(match command {
        Command::Hit { windows, algorithm, cost } => {
            let algorithm = match algorithm {
                AlgorithmWord::Sliding => Algorithm::Sliding,
                AlgorithmWord::Fixed => Algorithm::Fixed,
                AlgorithmWord::Bucket => Algorithm::Bucket,
            };
            let windows = windows.iter().map(|window| Window {
                key: key(&window.key),
                limit: window.limit,
                period_ms: window.period_ms,
                algorithm,
            });
            request::Command::hit(windows).costing(*cost)
        }
        Command::Get { key: name } => request::Command::get(key(name)),
        Command::Set { key: name, value, ttl_ms, mode, keep_ttl } => request::Command::Set {
            key: key(name),
            value: value.clone(),
            ttl_ms: *ttl_ms,
            mode: match mode {
                SetMode::Always => request::SetMode::Always,
                SetMode::Nx => request::SetMode::Nx,
                SetMode::Xx => request::SetMode::Xx,
            },
            keep_ttl: *keep_ttl,
        },
        Command::Delete { key: name } => request::Command::delete(key(name)),
        Command::Ttl { key: name } => request::Command::ttl(key(name)),
        Command::Expire { key: name, ttl_ms } => request::Command::expire(key(name), *ttl_ms),
        Command::Increment { key: name, by, ttl_ms } => request::Command::increment(key(name), *by, *ttl_ms),
        Command::Reserve { budgets, target, cost } => request::Command::Reserve {
            budgets: budgets
                .iter()
                .map(|budget| Budget::new(key(&budget.key), budget.limit, budget.period_ms))
                .collect(),
            target: *target,
            cost: *cost,
        },
        Command::Refund { receipt } => {
            let receipt = ReceiptId::parse(receipt);
            request::Command::refund(receipt.map_err(|fault| SendError::Name { flag: "the receipt", fault })?)
        }
    })
}
