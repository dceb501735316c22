//! A proxy between a store and its server, on which things go wrong.

use std::{
    io::Result,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// Every answer takes longer.
    Slow(Duration),
    /// The server says that it is of an old version.
    Old,
    /// Once the proxy is armed, the next command with this in it does not reach the server, and the connection
    /// breaks.
    LoseCommand(String),
    /// The same, but the command is done, and only its answer is lost.
    LoseAnswer(String),
}

/// A running proxy. It ends with the test's runtime.
pub(super) struct Proxy {
    port: u16,
    armed: Arc<AtomicBool>,
}

impl Proxy {
    pub(super) async fn start(server: u16, fault: Fault) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let (port, armed) = (listener.local_addr().unwrap().port(), Arc::new(AtomicBool::new(false)));
        let proxy = Self { port, armed: Arc::clone(&armed) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                let (armed, fault) = (Arc::clone(&armed), fault.clone());
                // However the connection ends, it has ended.
                tokio::spawn(async move { pass(client, server, &armed, &fault).await.ok() });
            }
        });
        proxy
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(super) fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    pub(super) fn has_struck(&self) -> bool {
        !self.armed.load(Ordering::SeqCst)
    }
}

/// Passes on what client and server say, until one of them or the fault ends it.
async fn pass(mut client: TcpStream, mut server: TcpStream, armed: &AtomicBool, fault: &Fault) -> Result<()> {
    let (mut commands, mut answers) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        tokio::select! {
            read = client.read(&mut commands) => {
                let command = &commands[..read?];
                let strikes = fault.concerns(command) && armed.swap(false, Ordering::SeqCst);
                if command.is_empty() || (strikes && matches!(fault, Fault::LoseCommand(_))) {
                    return Ok(());
                }
                server.write_all(command).await?;
                if strikes {
                    // Once it has answered, the command is done.
                    return server.read(&mut answers).await.map(drop);
                }
            }
            read = server.read(&mut answers) => {
                let answer = &mut answers[..read?];
                match fault {
                    _ if answer.is_empty() => return Ok(()),
                    Fault::Slow(delay) => tokio::time::sleep(*delay).await,
                    Fault::Old => make_old(answer),
                    Fault::LoseCommand(_) | Fault::LoseAnswer(_) => {}
                }
                client.write_all(answer).await?;
            }
        }
    }
}

impl Fault {
    fn concerns(&self, command: &[u8]) -> bool {
        match self {
            Self::Slow(_) | Self::Old => false,
            Self::LoseCommand(marker) | Self::LoseAnswer(marker) => {
                command.windows(marker.len()).any(|part| part == marker.as_bytes())
            }
        }
    }
}

/// Changes the first digit of the version.
fn make_old(answer: &mut [u8]) {
    let name = b"redis_version:";
    if let Some(at) = answer.windows(name.len()).position(|part| part == name) {
        answer[at + name.len()] = b'5';
    }
}
