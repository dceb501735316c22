//! The UDP face: two stages of admission around verification, and silence for everything else.

use std::{io, net::SocketAddr, sync::Arc};

use tidegate_admission::{Clock, Fingerprint, Sender, UdpGate};
use tokio::{net::UdpSocket, sync::watch};

use crate::{edge::Edge, endpoint::Endpoint, mediator::Outgoing, service::Service, wire::DATAGRAM_BYTES};

/// What a datagram passes through.
#[derive(Clone)]
pub struct Mediation {
    /// The service.
    pub service: Arc<Service>,
    /// The budgets of datagrams.
    pub gate: Arc<UdpGate>,
    /// What the budgets' windows go by.
    pub clock: Clock,
    /// What senders' clocks are compared with.
    pub edge: Arc<dyn Edge>,
}

/// One look at both clocks, for all datagrams of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    window_ms: u64,
    now_ms: u64,
}

/// The most datagrams between two looks at the clocks and at whether to end.
const BATCH: usize = 64;
/// Where a datagram says what it is for.
const OPERATION: usize = 4;

impl Mediation {
    /// Both clocks, now.
    #[must_use]
    pub fn moment(&self) -> Moment {
        Moment { window_ms: self.clock.now_ms(), now_ms: self.edge.now_ms() }
    }

    /// What to send for a datagram. None: whatever the reason, nobody is told.
    #[must_use]
    pub fn answer(&self, datagram: &[u8], source: SocketAddr, at: Moment) -> Option<[Outgoing; 2]> {
        let operation = datagram.get(OPERATION).copied().unwrap_or_default();
        let unverified = self.gate.stage_one(at.window_ms, source.ip(), operation, datagram.len())?;
        let verified = self.service.verify(datagram, at.now_ms)?;
        let source = Endpoint::observed(source);
        // A replay must not spend what belongs to whom it was copied from.
        self.service.check(&verified, source, at.now_ms).ok()?;
        let claims = verified.message.claims;
        let sender = Sender {
            capability: Fingerprint::of(&verified.fingerprint),
            role: claims.role.byte(),
            mediation_handle: &claims.attempt.0,
        };
        if !self.gate.stage_two(at.window_ms, &sender) {
            return None;
        }
        self.service.bind(verified, source, unverified.into_allowance(), at.now_ms).ok()?
    }

    /// Takes datagrams until it is told to end.
    ///
    /// # Errors
    /// The socket fails.
    pub async fn serve(&self, socket: &UdpSocket, mut ended: watch::Receiver<bool>) -> io::Result<()> {
        // One byte more than any datagram that is taken, so that a longer one shows.
        let mut buffer = [0; DATAGRAM_BYTES + 1];
        loop {
            tokio::select! {
                _ = ended.wait_for(|ended| *ended) => return Ok(()),
                readable = socket.readable() => readable?,
            }
            let at = self.moment();
            for _ in 0..BATCH {
                match socket.try_recv_from(&mut buffer) {
                    Ok((bytes, source)) => self.take(socket, &buffer[..bytes], source, at),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // A peer that an earlier datagram went to is not there: nothing to do with the socket.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                    Err(error) => return Err(error),
                }
            }
            // A socket that is never empty must not keep everything else from its turn.
            tokio::task::yield_now().await;
        }
    }

    fn take(&self, socket: &UdpSocket, datagram: &[u8], source: SocketAddr, at: Moment) {
        for outgoing in self.answer(datagram, source, at).into_iter().flatten() {
            // What can't be sent is lost, as datagrams are.
            let _ = socket.try_send_to(&outgoing.datagram, outgoing.to.socket_address());
        }
    }
}
