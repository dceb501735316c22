//! The listener that other proxies ask.

use std::{convert::Infallible, net::IpAddr, sync::Arc, time::Duration};

use hyper::{body::Incoming, server::conn, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tidegate_listen::{
    Activity, Connections, Patience, Shutdown, Workers, accept, finish, speaks_http2, told,
};
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::Authz;

/// What the listener allows a proxy.
#[derive(Debug, Clone, Copy)]
pub struct ListenerOptions {
    /// For a request's head.
    pub header_timeout: Duration,
    /// Between two requests of a connection.
    pub idle_timeout: Duration,
    /// For the requests in work when the server ends.
    pub shutdown_timeout: Duration,
    /// Bytes of a head.
    pub header_bytes_max: usize,
    /// Streams of an HTTP/2 connection at once.
    pub streams_max: u32,
}

/// Answers the connections of a listener, HTTP/1.1 and HTTP/2 in clear text, until `shutdown`. `refused` is called for
/// every connection that found no place.
pub async fn serve(
    listener: TcpListener,
    authz: Authz,
    options: ListenerOptions,
    refused: impl Fn(),
    connections: Connections,
    workers: Workers,
    shutdown: Shutdown,
) {
    let run = |stream, peer: std::net::SocketAddr, _worker| {
        let (authz, shutdown) = (authz.clone(), shutdown.clone());
        async move {
            // It is registered anew, with the runtime that it is served on.
            if let Ok(stream) = TcpStream::from_std(stream) {
                answer(stream, peer.ip(), authz, options, shutdown).await;
            }
        }
    };
    let tasks = accept(&listener, run, refused, &connections, &workers, shutdown.clone()).await;
    drop(listener);
    finish(tasks, options.shutdown_timeout).await;
}

async fn answer(
    stream: TcpStream,
    peer: IpAddr,
    authz: Authz,
    options: ListenerOptions,
    mut shutdown: Shutdown,
) {
    // Without it answers wait for the proxy's acknowledgement; a failure costs only speed.
    let _ = stream.set_nodelay(true);
    let Ok(Some(is_http2)) = timeout(options.header_timeout, speaks_http2(&stream)).await else { return };
    let activity = Activity::new();
    let service = service_fn({
        let activity = Arc::clone(&activity);
        move |request: http::Request<Incoming>| {
            let (authz, in_work) = (authz.clone(), activity.begin());
            async move {
                let response = authz.answer(peer, request).await;
                drop(in_work);
                Ok::<_, Infallible>(response)
            }
        }
    });
    let patience = Patience {
        head: options.header_timeout,
        idle: options.idle_timeout,
        blocked: options.header_timeout,
    };
    let stalled = activity.stalled(patience);
    let stream = TokioIo::new(stream);
    if is_http2 {
        let connection = conn::http2::Builder::new(TokioExecutor::new())
            .max_concurrent_streams(options.streams_max)
            .max_header_list_size(u32::try_from(options.header_bytes_max).unwrap_or(u32::MAX))
            .serve_connection(stream, service);
        tokio::pin!(connection);
        tokio::select! {
            _served = &mut connection => return,
            () = stalled => {}
            () = told(&mut shutdown) => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = timeout(options.shutdown_timeout, connection).await;
    } else {
        let connection = conn::http1::Builder::new()
            .max_header_size(options.header_bytes_max)
            .serve_connection(stream, service);
        tokio::pin!(connection);
        tokio::select! {
            _served = &mut connection => return,
            () = stalled => return,
            () = told(&mut shutdown) => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = timeout(options.shutdown_timeout, connection).await;
    }
}
