//! A connection that has left HTTP: bytes in both directions until one side ends or both are silent.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split},
    net::TcpStream,
    time::{Instant, sleep},
};

/// Small enough for thousands of tunnels, large enough for a frame.
const BUFFER_BYTES: usize = 8 * 1024;

/// Brings bytes from each side to the other. What has been read of either already goes first. Ends when both have
/// ended, one of them fails, or neither has sent anything for `idle`.
pub(super) async fn run<S: AsyncRead + AsyncWrite + Unpin>(
    client: S,
    client_read: &Bytes,
    app: TcpStream,
    app_read: &Bytes,
    idle: Duration,
) {
    let (since, last_ms) = (Instant::now(), AtomicU64::new(0));
    let touch = || {
        let elapsed_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        last_ms.store(elapsed_ms, Ordering::Relaxed);
    };
    let ((from_client, to_client), (from_app, to_app)) = (split(client), split(app));
    let both = async {
        tokio::try_join!(
            pump(from_client, client_read, to_app, &touch),
            pump(from_app, app_read, to_client, &touch)
        )
    };
    let silence = async {
        loop {
            let silent = since.elapsed() - Duration::from_millis(last_ms.load(Ordering::Relaxed));
            match idle.checked_sub(silent) {
                Some(left) if !left.is_zero() => sleep(left).await,
                _ => return,
            }
        }
    };
    tokio::select! { _ended = both => {}, () = silence => {} }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    read: &[u8],
    mut to: impl AsyncWrite + Unpin,
    touch: &impl Fn(),
) -> io::Result<()> {
    to.write_all(read).await?;
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return to.shutdown().await;
        }
        touch();
        to.write_all(&buffer[..length]).await?;
        to.flush().await?;
    }
}
