//! The connection to whichever server is the master now.
//!
//! One connection carries everything: the rows of a store are on one server. After any failure it is given up,
//! and the next call looks for the master again.

use std::time::Duration;

use parking_lot::Mutex;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, FromRedisValue, IntoConnectionInfo,
    Pipeline, RedisConnectionInfo, RedisError, ServerErrorKind, TlsCertificates, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cmd, from_redis_value,
    io::tcp::TcpSettings,
};
use thiserror::Error;
use tokio::time::timeout;

use crate::{
    script::Script,
    url::{Address, Credentials, StoreUrl},
};

/// A way to the master.
#[derive(Debug)]
pub(crate) struct Link {
    url: StoreUrl,
    certificates: TlsCertificates,
    patience: Duration,
    connect_patience: Duration,
    connected: Mutex<Option<Connected>>,
    /// The node of the cluster that the store's slot was last said to be on.
    home: Mutex<Option<Address>>,
}

#[derive(Debug, Clone)]
struct Connected {
    to: Address,
    connection: MultiplexedConnection,
}

/// What a command does to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It may be sent again after a connection broke.
    Repeatable,
    /// It must not be sent again unless it certainly was not done, and has to reach so many replicas.
    Once { replicas: u32 },
}

/// Why a call to the server gave no answer. Whether it was done is not known, but for
/// [`LinkError::was_refused`].
#[derive(Debug, Error)]
pub(crate) enum LinkError {
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error("the server answered with an error, or the connection to it failed")]
    Server(#[source] RedisError),
    #[error("connecting to {to}")]
    Connect {
        to: Address,
        #[source]
        cause: RedisError,
    },
    #[error("none of the {sentinels} sentinels knows a master called {master} that is one")]
    NoMaster {
        sentinels: usize,
        master: String,
        #[source]
        cause: Option<Box<LinkError>>,
    },
    #[error("the cluster's nodes point to one another")]
    Astray,
    #[error("{reached} of {wanted} replicas have it; it is not known whether it will last")]
    Replicas { reached: u32, wanted: u32 },
}

/// What is sent as one.
#[derive(Debug, Clone, Copy)]
enum Message<'a> {
    One(&'a Cmd),
    Many(&'a Pipeline),
}

impl Link {
    /// A way to the master of `url` whose calls end within `patience`. Servers' certificates are checked against
    /// `root_certificates` in PEM, or the system's. Nothing is connected yet.
    pub(crate) fn new(url: StoreUrl, root_certificates: Option<Vec<u8>>, patience: Duration) -> Self {
        Self {
            url,
            certificates: TlsCertificates { client_tls: None, root_cert: root_certificates },
            patience,
            connect_patience: (patience / 4).max(CONNECT_PATIENCE_MIN),
            connected: Mutex::default(),
            home: Mutex::default(),
        }
    }

    /// Runs the command that `script` made. A script that the server does not know is told to it, which has done
    /// nothing by then.
    pub(crate) async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        command: &Cmd,
        effect: Effect,
    ) -> Result<T, LinkError> {
        match self.call(command, effect).await {
            Err(LinkError::Server(error)) if error.kind() == NO_SCRIPT => {
                self.call(&script.by_code(command), effect).await
            }
            answer => answer,
        }
    }

    /// Sends a command to the master.
    pub(crate) async fn call<T: FromRedisValue>(
        &self,
        command: &Cmd,
        effect: Effect,
    ) -> Result<T, LinkError> {
        let answer = self.exchange(Message::One(command), effect).await?.pop();
        from_redis_value(answer.unwrap_or(Value::Nil)).map_err(|error| LinkError::Server(error.into()))
    }

    /// Sends commands to the master in one message; answers each one's answer. None of them may change rows.
    pub(crate) async fn call_all(&self, commands: &Pipeline) -> Result<Vec<Value>, LinkError> {
        self.exchange(Message::Many(commands), Effect::Repeatable).await
    }

    async fn exchange(&self, message: Message<'_>, effect: Effect) -> Result<Vec<Value>, LinkError> {
        match self.exchange_once(message, effect).await {
            Err(error) if effect == Effect::Repeatable && error.is_broken_connection() => {
                self.exchange_once(message, effect).await
            }
            answer => answer,
        }
    }

    async fn exchange_once(&self, message: Message<'_>, effect: Effect) -> Result<Vec<Value>, LinkError> {
        let answer = timeout(self.patience, self.send(message, effect)).await;
        let answer = answer.unwrap_or(Err(LinkError::Late(self.patience)));
        if answer.as_ref().is_err_and(|error| !error.is_unknown_script()) {
            // Whatever it was, a new connection is the surest way to be rid of it.
            *self.connected.lock() = None;
        }
        answer
    }

    /// Sends the message, and sends it on to where a node of a cluster says that it belongs.
    async fn send(&self, message: Message<'_>, effect: Effect) -> Result<Vec<Value>, LinkError> {
        for _ in 0..REDIRECTIONS_MAX {
            let Connected { to, mut connection } = self.connected().await?;
            match message.pass(&mut connection).await {
                Ok(answer) => {
                    self.await_replicas(&mut connection, effect).await?;
                    return Ok(answer);
                }
                Err(error) => {
                    let home = moved_to(&error, &to).ok_or(LinkError::Server(error))?;
                    *self.connected.lock() = None;
                    *self.home.lock() = Some(home);
                }
            }
        }
        Err(LinkError::Astray)
    }

    /// Waits until what this connection has written is on as many replicas as it must.
    async fn await_replicas(
        &self,
        connection: &mut MultiplexedConnection,
        effect: Effect,
    ) -> Result<(), LinkError> {
        let Effect::Once { replicas: wanted @ 1.. } = effect else { return Ok(()) };
        let mut wait = cmd("WAIT");
        wait.arg(wanted).arg(u64::try_from((self.patience / 2).as_millis()).unwrap_or(u64::MAX));
        let reached = wait.query_async(connection).await.map_err(LinkError::Server)?;
        if reached < wanted { Err(LinkError::Replicas { reached, wanted }) } else { Ok(()) }
    }

    async fn connected(&self) -> Result<Connected, LinkError> {
        if let Some(connected) = self.connected.lock().clone() {
            return Ok(connected);
        }
        let connected = match &self.url.master {
            Some(master) => self.connect_by_sentinels(master).await,
            None => self.connect_to_any().await,
        }?;
        *self.connected.lock() = Some(connected.clone());
        Ok(connected)
    }

    /// Connects to where the store was last, or else to the first node that answers.
    async fn connect_to_any(&self) -> Result<Connected, LinkError> {
        let home = self.home.lock().take();
        let mut failure = LinkError::Astray;
        for to in home.iter().chain(&self.url.nodes) {
            match self.connect(to, &self.url.credentials, self.url.database).await {
                Ok(connection) => return Ok(Connected { to: to.clone(), connection }),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn connect_by_sentinels(&self, master: &str) -> Result<Connected, LinkError> {
        let mut failure = None;
        for sentinel in &self.url.nodes {
            match self.connect_by_sentinel(sentinel, master).await {
                Ok(Some(connected)) => return Ok(connected),
                Ok(None) => {}
                Err(error) => failure = Some(Box::new(error)),
            }
        }
        let (sentinels, master) = (self.url.nodes.len(), master.to_owned());
        Err(LinkError::NoMaster { sentinels, master, cause: failure })
    }

    /// Connects to the server that `sentinel` knows as the `master`, if it sees itself as one.
    async fn connect_by_sentinel(
        &self,
        sentinel: &Address,
        master: &str,
    ) -> Result<Option<Connected>, LinkError> {
        let mut asked = self.connect(sentinel, &self.url.sentinel_credentials, 0).await?;
        let mut question = cmd("SENTINEL");
        question.arg("get-master-addr-by-name").arg(master);
        let address: Option<(String, u16)> = self.ask(&mut asked, &question).await?;
        let Some((host, port)) = address else { return Ok(None) };
        let to = Address { host, port };
        let mut connection = self.connect(&to, &self.url.credentials, self.url.database).await?;
        let role: Vec<Value> = self.ask(&mut connection, &cmd("ROLE")).await?;
        let is_master = role.first() == Some(&Value::BulkString(b"master".to_vec()));
        Ok(is_master.then_some(Connected { to, connection }))
    }

    async fn ask<T: FromRedisValue>(
        &self,
        connection: &mut MultiplexedConnection,
        question: &Cmd,
    ) -> Result<T, LinkError> {
        let answer = timeout(self.connect_patience, question.query_async(connection)).await;
        answer.map_err(|_| LinkError::Late(self.connect_patience))?.map_err(LinkError::Server)
    }

    async fn connect(
        &self,
        to: &Address,
        credentials: &Credentials,
        database: u32,
    ) -> Result<MultiplexedConnection, LinkError> {
        let failed = |cause| LinkError::Connect { to: to.clone(), cause };
        let (host, port) = (to.host.clone(), to.port);
        let address = if self.url.tls {
            ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
        } else {
            ConnectionAddr::Tcp(host, port)
        };
        let mut settings = RedisConnectionInfo::default().set_db(database.into());
        if let Some(user) = &credentials.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &credentials.password {
            settings = settings.set_password(password);
        }
        let server = address.into_connection_info().map_err(failed)?;
        let server = server.set_redis_settings(settings);
        let server = server.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect_patience))
            .set_response_timeout(None);
        let client = if self.url.tls {
            Client::build_with_tls(server, self.certificates.clone())
        } else {
            Client::open(server)
        };
        let client = client.map_err(failed)?;
        client.get_multiplexed_async_connection_with_config(&config).await.map_err(failed)
    }
}

impl Message<'_> {
    /// Sends it; answers what each of its commands was answered, or the first error.
    async fn pass(self, connection: &mut MultiplexedConnection) -> Result<Vec<Value>, RedisError> {
        let commands = match self {
            Self::One(command) => return Ok(vec![command.query_async(connection).await?]),
            Self::Many(commands) => commands,
        };
        let answers = connection.req_packed_commands(commands, 0, commands.len()).await?;
        let error = answers.iter().find_map(|answer| match answer {
            Value::ServerError(error) => Some(RedisError::from(error.clone())),
            _ => None,
        });
        error.map_or(Ok(answers), Err)
    }
}

impl LinkError {
    /// The server's own code for an error that it answered, such as `OOM`.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Self::Server(error) => error.code(),
            _ => None,
        }
    }

    fn is_unknown_script(&self) -> bool {
        matches!(self, Self::Server(error) if error.kind() == NO_SCRIPT)
    }

    fn is_broken_connection(&self) -> bool {
        matches!(self, Self::Server(error) if error.is_connection_dropped())
    }
}

/// Where a node of a cluster, asked at `asked`, says that the store's slot is.
fn moved_to(error: &RedisError, asked: &Address) -> Option<Address> {
    if error.kind() != ErrorKind::Server(ServerErrorKind::Moved) {
        return None;
    }
    let (address, _slot) = error.redirect_node()?;
    // A node that does not know its own name tells a port of the host that was asked.
    match address.strip_prefix(':') {
        Some(port) => Some(Address { host: asked.host.clone(), port: port.parse().ok()? }),
        None => Address::parse(address, asked.port).ok(),
    }
}

const NO_SCRIPT: ErrorKind = ErrorKind::Server(ServerErrorKind::NoScript);

/// From a node to the right one, and once more if the slot has just moved on.
const REDIRECTIONS_MAX: usize = 4;

/// Time for TCP, TLS and a greeting on a busy machine.
const CONNECT_PATIENCE_MIN: Duration = Duration::from_millis(250);
