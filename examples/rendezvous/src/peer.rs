//! A player's side: lists or finds a game over HTTP, binds over UDP, meets the other player.

mod api;

use std::{io, net::SocketAddr, time::Duration};

use thiserror::Error;
use tokio::{net::UdpSocket, time};

pub use api::{Api, ApiError};

use crate::{
    capability::Capability,
    edge::{Edge, System},
    endpoint::Endpoint,
    wire::{self, Message, Operation},
};

/// Why two players did not meet.
#[derive(Debug, Error)]
pub enum MeetError {
    /// The HTTP side.
    #[error("asking the rendezvous")]
    Api(#[from] ApiError),
    /// The socket.
    #[error("sending or receiving datagrams")]
    Socket(#[from] io::Error),
    /// The rendezvous introduced nobody.
    #[error("nobody was introduced within {} s", INTRODUCTION_TIMEOUT.as_secs())]
    NotIntroduced,
    /// Introduced, and yet no datagram of the other came through.
    #[error("the other player did not answer within {} s", MEETING_TIMEOUT.as_secs())]
    NotMet,
}

/// A bind is sent again after this; datagrams get lost.
const RESEND: Duration = Duration::from_millis(250);
const INTRODUCTION_TIMEOUT: Duration = Duration::from_secs(20);
const MEETING_TIMEOUT: Duration = Duration::from_secs(10);

/// What players say to one another once they are introduced.
const HELLO: &[u8] = b"hello";
const SEEN: &[u8] = b"i see you";

/// Binds with `capability` at `mediator` from `socket`, the one to play on; where the other player may be.
///
/// # Errors
/// The socket fails, or nobody is introduced in time.
pub async fn introduced(
    socket: &UdpSocket,
    mediator: SocketAddr,
    capability: &Capability,
    candidates: &[Endpoint],
) -> Result<Vec<Endpoint>, MeetError> {
    let binding = async {
        let mut datagram = [0; wire::DATAGRAM_BYTES + 1];
        for sequence in 1.. {
            let bind = Message {
                operation: Operation::Bind,
                claims: *capability.claims(),
                sequence,
                sent_at_ms: System.now_ms(),
                endpoints: candidates.to_vec(),
            };
            socket.send_to(&bind.sign(capability.secret()), mediator).await?;
            let answer = async {
                loop {
                    let (bytes, from) = socket.recv_from(&mut datagram).await?;
                    if from != mediator {
                        continue;
                    }
                    if let Some(message) = wire::read_introduction(&datagram[..bytes], capability) {
                        return Ok::<_, io::Error>(message.endpoints);
                    }
                }
            };
            if let Ok(answered) = time::timeout(RESEND, answer).await {
                return Ok(answered?);
            }
        }
        Err(MeetError::NotIntroduced)
    };
    time::timeout(INTRODUCTION_TIMEOUT, binding).await.unwrap_or(Err(MeetError::NotIntroduced))
}

/// Says hello to every endpoint that the other may be at until both have heard one another; where it was.
///
/// # Errors
/// The socket fails, or the other is not heard in time.
pub async fn met(socket: &UdpSocket, endpoints: &[Endpoint]) -> Result<SocketAddr, MeetError> {
    let meeting = async {
        let mut datagram = [0; 64];
        loop {
            for endpoint in endpoints {
                // An endpoint that can't be reached is one of several.
                let _ = socket.send_to(HELLO, endpoint.socket_address()).await;
            }
            let heard = async {
                loop {
                    let (bytes, from) = socket.recv_from(&mut datagram).await?;
                    if !endpoints.iter().any(|endpoint| *endpoint == Endpoint::observed(from)) {
                        continue;
                    }
                    // The other may not have heard us yet.
                    socket.send_to(SEEN, from).await?;
                    if &datagram[..bytes] == SEEN {
                        return Ok::<_, io::Error>(from);
                    }
                }
            };
            if let Ok(heard) = time::timeout(RESEND, heard).await {
                return Ok(heard?);
            }
        }
    };
    time::timeout(MEETING_TIMEOUT, meeting).await.unwrap_or(Err(MeetError::NotMet))
}

/// Lists a game, waits for a joiner, and meets it.
///
/// # Errors
/// See [`MeetError`].
pub async fn host(api: &Api, mediator: SocketAddr, socket: &UdpSocket) -> Result<SocketAddr, MeetError> {
    let listing = api.create("a game").await?;
    let waiting = async {
        loop {
            if let Some(capability) = api.attempts(&listing).await?.pop() {
                return Ok::<_, ApiError>(capability);
            }
            time::sleep(RESEND).await;
        }
    };
    let capability =
        time::timeout(INTRODUCTION_TIMEOUT, waiting).await.map_err(|_| MeetError::NotIntroduced)??;
    let endpoints = introduced(socket, mediator, &capability, &own_candidates(socket)).await?;
    let met = met(socket, &endpoints).await?;
    api.delete(&listing).await?;
    Ok(met)
}

/// Joins the newest game, and meets its host.
///
/// # Errors
/// See [`MeetError`].
pub async fn join(api: &Api, mediator: SocketAddr, socket: &UdpSocket) -> Result<SocketAddr, MeetError> {
    let looking = async {
        loop {
            if let Some(listing) = api.list().await?.into_iter().next() {
                return Ok::<_, ApiError>(listing);
            }
            time::sleep(RESEND).await;
        }
    };
    let listing =
        time::timeout(INTRODUCTION_TIMEOUT, looking).await.map_err(|_| MeetError::NotIntroduced)??;
    let capability = api.start_attempt(&listing).await?;
    let endpoints = introduced(socket, mediator, &capability, &own_candidates(socket)).await?;
    met(socket, &endpoints).await
}

/// The address that the socket has in its own network, if it is bound to one and it is private.
fn own_candidates(socket: &UdpSocket) -> Vec<Endpoint> {
    let own = socket.local_addr().map(Endpoint::observed);
    own.into_iter().filter(|own| own.is_candidate_of(*own)).collect()
}
