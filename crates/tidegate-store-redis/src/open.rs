//! Opening a store: the server is asked what it is, and shown everything that the store will want of it.

use redis::cmd;
use tidegate_store::{Backend, BackendError, Change, Entry, Key, NewState, Scope};
use tracing::warn;

use crate::{
    OpenError, RedisBackend,
    link::{Effect, LinkError},
    names::is_prefix,
    options::Options,
    server::ServerFacts,
};

/// How rows are stored. A version that stores them differently counts on.
const FORMAT: u32 = 2;

impl RedisBackend {
    /// Opens the store at `options.url`; an empty one is set up. Must be called on a tokio runtime.
    ///
    /// A server that may lose live counts is warned of (`kind = "limit-store-may-forget"`), and so is one that
    /// does not tell (`INFO` is forbidden).
    ///
    /// # Errors
    /// See [`OpenError`]. The store is as it was, but that it may have been set up.
    pub async fn connect(options: &Options) -> Result<Self, OpenError> {
        if !is_prefix(&options.prefix) {
            return Err(OpenError::Prefix { prefix: options.prefix.clone() });
        }
        if options.url.tls {
            // What `redis` encrypts with is the process's choice. One that was made already stands.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let certificates = |file: &String| {
            let read = std::fs::read(file);
            read.map_err(|cause| OpenError::Certificates { file: file.clone(), cause })
        };
        let backend = Self::new(options, options.url.ca_file.as_ref().map(certificates).transpose()?);
        let server = options.url.to_string();
        backend.check_format(&server).await?;
        backend.check_server(&server).await?;
        backend.rehearse(&server).await?;
        Ok(backend)
    }

    async fn check_format(&self, server: &str) -> Result<(), OpenError> {
        let failed = |cause: LinkError| OpenError::Server {
            server: server.to_owned(),
            doing: "reading its format",
            cause: cause.into(),
        };
        let mut read = cmd("GET");
        read.arg(self.names.format());
        let mut found: Option<String> = self.link.call(&read, Effect::Repeatable).await.map_err(failed)?;
        if found.is_none() {
            let mut write = cmd("SET");
            write.arg(self.names.format()).arg(FORMAT).arg("NX");
            // Another instance may be first.
            let _written: Option<String> =
                self.link.call(&write, Effect::Repeatable).await.map_err(failed)?;
            found = self.link.call(&read, Effect::Repeatable).await.map_err(failed)?;
        }
        let found = found.unwrap_or_default();
        if found == FORMAT.to_string() {
            return Ok(());
        }
        Err(OpenError::Format { server: server.to_owned(), found, readable: FORMAT })
    }

    async fn check_server(&self, server: &str) -> Result<(), OpenError> {
        let info: Result<String, LinkError> = self.link.call(&cmd("INFO"), Effect::Repeatable).await;
        let facts = info.as_deref().ok().and_then(ServerFacts::read);
        let Some(facts) = facts else {
            warn!(
                kind = "limit-store-may-forget",
                server,
                "the server does not tell its version, nor whether it may remove live counts: allow INFO to be sure"
            );
            return Ok(());
        };
        if !facts.is_new_enough() {
            return Err(OpenError::ServerTooOld { server: server.to_owned(), version: facts.version });
        }
        for reason in facts.ways_to_forget() {
            warn!(kind = "limit-store-may-forget", server, reason, "the limit store may forget live counts");
        }
        Ok(())
    }

    /// Writes and deletes a row, in one step that nobody sees: a user who may run only some of the commands
    /// would write half of a batch.
    async fn rehearse(&self, server: &str) -> Result<(), OpenError> {
        match self.write_and_delete().await {
            Err(error) if !error.is_conflict() && !passes(&error) => Err(OpenError::Server {
                server: server.to_owned(),
                doing: "trying the commands that it needs",
                cause: error.into(),
            }),
            _ => Ok(()),
        }
    }

    async fn write_and_delete(&self) -> Result<(), BackendError> {
        let key = Key::of(&[b"rehearsal"]);
        let loaded = self.load(&[key]).await?;
        let entry = Entry { value: [0].as_slice().into(), expires_at_ms: loaded.now_ms + 60_000 };
        let states = [NewState::Put(entry), NewState::Deleted];
        let changes = states.map(|state| Change { key, state }).into();
        self.commit(loaded.batch, changes).await?.await?;
        self.keys_in(Scope { group: key.group(), member: None }, 1).await?;
        self.sweep(1).await?;
        Ok(())
    }
}

/// Whether the error is one that the store is to be opened with: there is no memory left, but what the server
/// holds goes on counting; or a replica is away, and may come back.
fn passes(error: &BackendError) -> bool {
    let cause = error.cause.as_ref().and_then(|cause| cause.downcast_ref::<LinkError>());
    cause.is_some_and(|cause| match cause {
        LinkError::Replicas { .. } => true,
        _ => matches!(cause.code(), Some("OOM" | "NOREPLICAS")),
    })
}
