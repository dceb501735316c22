//! Closing a connection so that its last answer arrives.

use std::time::Duration;

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};

/// How long a connection that is being closed over an unread body may go on sending before it is cut, so
/// that the answer reaches a client that reads only after it has written.
const LINGER: Duration = Duration::from_secs(1);
/// How much of that is read and thrown away.
const LINGER_BYTES_MAX: usize = 256 * 1024;

/// Says that nothing more will come, and with `linger` for a moment takes what is still being sent: closing a
/// socket with unread bytes would reset it, and the client might never see its answer.
pub async fn close<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, linger: bool) {
    let shut = stream.shutdown().await;
    if shut.is_err() || !linger {
        return;
    }
    let drain = async {
        let (mut scratch, mut taken) = ([0; 4096], 0);
        while taken < LINGER_BYTES_MAX {
            match stream.read(&mut scratch).await {
                Ok(length) if length > 0 => taken += length,
                _ended => break,
            }
        }
    };
    let _ = timeout(LINGER, drain).await;
}
