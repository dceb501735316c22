//! A restart that refuses nobody: the new process takes the listening sockets of the old one.
//!
//! The sockets stay open all the time, so connections that come while neither process accepts wait in their
//! queues. Two processes that merely bind the same port (`SO_REUSEPORT`) would reset what waits in the queue of
//! the one that closes its own.

use std::{
    io::{self, IoSlice, IoSliceMut, Read as _, Write as _},
    mem::MaybeUninit,
    net::SocketAddr,
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use tokio::{
    net::{TcpListener, UnixListener},
    sync::mpsc,
};

use super::ServeError;

/// Listening sockets by the key that they listen for, and whose they are until [`Sockets::confirm`].
#[derive(Debug, Default)]
pub(super) struct Sockets {
    listeners: Vec<(String, std::net::TcpListener)>,
    owner: Option<UnixStream>,
}

/// The listeners of a process: three to five.
const SOCKETS_MAX: usize = 8;
/// A key for each of them.
const TEXT_BYTES_MAX: usize = 512;
/// How long the other process may take for its part.
const PATIENCE: Duration = Duration::from_secs(5);
/// What the new process says once it has the sockets.
const TAKEN: u8 = b'T';

impl Sockets {
    /// Borrows the sockets of the process that serves from this data directory.
    ///
    /// # Errors
    /// There is none, or it does not hand them over.
    pub(super) fn take_over(directory: &Path) -> Result<Self, ServeError> {
        let path = path_in(directory);
        let failed = |cause| ServeError::TakeOver { path: path.display().to_string(), cause };
        receive(&path).map_err(failed)
    }

    /// Tells the other process that they are taken: it stops accepting, and ends. Those that nobody asked for are
    /// closed. Without this it goes on.
    ///
    /// # Errors
    /// It has waited for too long, or has ended.
    pub(super) fn confirm(mut self) -> Result<(), ServeError> {
        let Some(owner) = &mut self.owner else { return Ok(()) };
        let failed = |cause| ServeError::TakeOver { path: "its data directory".to_owned(), cause };
        owner.write_all(&[TAKEN]).map_err(failed)
    }

    /// The one that listens at `address` for `key`, else a new one. Any port is port 0.
    pub(super) async fn listen(
        &mut self,
        key: &'static str,
        address: SocketAddr,
    ) -> Result<TcpListener, ServeError> {
        let failed = |cause| ServeError::Listen { key, address: address.to_string(), cause };
        let is_same = |listener: &std::net::TcpListener| {
            let is_there =
                |there: SocketAddr| there == address || address.port() == 0 && there.ip() == address.ip();
            listener.local_addr().is_ok_and(is_there)
        };
        let found = self.listeners.iter().position(|(other, listener)| other == key && is_same(listener));
        let listener = match found {
            Some(index) => {
                let listener = self.listeners.swap_remove(index).1;
                listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener))
            }
            None => TcpListener::bind(address).await,
        };
        listener.map_err(failed)
    }
}

/// Offers the listening sockets of this process to one that takes over.
#[derive(Debug)]
pub(super) struct Offer {
    sockets: Vec<(&'static str, OwnedFd)>,
    taken: mpsc::Sender<()>,
}

impl Offer {
    /// An offer, and what tells once that it was taken.
    pub(super) fn new() -> (Self, mpsc::Receiver<()>) {
        let (taken, told) = mpsc::channel(1);
        (Self { sockets: Vec::new(), taken }, told)
    }

    /// Offers a listener too.
    pub(super) fn add(&mut self, key: &'static str, listener: &TcpListener) {
        // Without a descriptor for it this one is bound anew by whoever takes over.
        if let Ok(socket) = listener.as_fd().try_clone_to_owned() {
            self.sockets.push((key, socket));
        }
    }

    /// Waits for a process that takes over, at a socket of mode 0600 in the data directory.
    pub(super) async fn serve(self, listener: UnixListener) {
        loop {
            let Ok((stream, _)) = listener.accept().await else { return };
            let given = stream.into_std().and_then(|stream| self.give(&stream).map(|()| stream));
            let taken = match given {
                Ok(stream) => tokio::task::spawn_blocking(move || is_taken(stream)).await.unwrap_or(false),
                Err(error) => {
                    tracing::warn!(kind = "handover-failing", %error, "the sockets can't be handed over");
                    false
                }
            };
            if taken {
                tracing::info!(kind = "handed-over", "another process has taken the listening sockets");
                // The receiver has gone only if this process ends anyway.
                let _ = self.taken.send(()).await;
                return;
            }
        }
    }

    fn give(&self, stream: &UnixStream) -> io::Result<()> {
        let keys: Vec<&str> = self.sockets.iter().map(|(key, _)| *key).collect();
        let sockets: Vec<BorrowedFd<'_>> = self.sockets.iter().map(|(_, socket)| socket.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&sockets)) {
            return Err(io::Error::other("too many sockets"));
        }
        let text = keys.join("\n");
        sendmsg(stream, &[IoSlice::new(text.as_bytes())], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

/// Where a process that serves from this data directory hands over.
pub(super) fn path_in(directory: &Path) -> PathBuf {
    directory.join("handover.sock")
}

fn is_taken(mut stream: UnixStream) -> bool {
    let mut answer = [0];
    let heard = stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_read_timeout(Some(PATIENCE)))
        .and_then(|()| stream.read_exact(&mut answer));
    heard.is_ok() && answer == [TAKEN]
}

fn receive(path: &Path) -> io::Result<Sockets> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut text = [0; TEXT_BYTES_MAX];
    let came = recvmsg(&stream, &mut [IoSliceMut::new(&mut text)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let sockets: Vec<OwnedFd> = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
            _ => None,
        })
        .flatten()
        .collect();
    let keys: Vec<String> = String::from_utf8_lossy(&text[..came.bytes]).lines().map(str::to_owned).collect();
    if sockets.is_empty() || sockets.len() != keys.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not the sockets of a Tidegate process"));
    }
    let listeners = keys.into_iter().zip(sockets.into_iter().map(Into::into)).collect();
    Ok(Sockets { listeners, owner: Some(stream) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sockets_go_from_one_to_the_other() {
        let directory = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mut offer, mut taken) = Offer::new();
        offer.add("a", &listener);
        let socket = UnixListener::bind(path_in(directory.path())).unwrap();
        let offering = tokio::spawn(offer.serve(socket));
        let path = directory.path().to_owned();
        let mut sockets =
            tokio::task::spawn_blocking(move || Sockets::take_over(&path)).await.unwrap().unwrap();
        let same = sockets.listen("a", address).await.unwrap();
        assert_eq!(same.local_addr().unwrap(), address);
        let other = sockets.listen("b", "127.0.0.1:0".parse().unwrap()).await.unwrap();
        assert_ne!(other.local_addr().unwrap(), address);
        assert!(taken.try_recv().is_err());
        sockets.confirm().unwrap();
        taken.recv().await.unwrap();
        offering.await.unwrap();
        drop(listener);
        let (client, accepted) = tokio::join!(tokio::net::TcpStream::connect(address), same.accept());
        assert!(client.is_ok() && accepted.is_ok());
    }

    #[test]
    fn nobody_there_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(Sockets::take_over(directory.path()), Err(ServeError::TakeOver { .. })));
    }
}
