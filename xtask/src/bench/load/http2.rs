//! The same checks over HTTP/2 in clear text: few connections, several streams on each.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use h2::client::SendRequest;

use super::{
    Order, Outcome, Plan,
    rpc::{self, RpcTemplate, Signer},
};
use crate::{
    bench::{histogram::Histogram, random::Random},
    clock,
};

/// How many requests share a connection, as a client with a pool of connections would have it.
const STREAMS: usize = 5;

/// Drives `server` with as many streams as the plan has connections, for the plan's time.
///
/// # Errors
/// A connection failed or an answer was wrong.
pub(crate) fn drive(template: &RpcTemplate, secret: &str, server: SocketAddr, plan: Plan) -> Result<Outcome> {
    let Order::RandomFor(duration) = plan.order else { bail!("HTTP/2 load goes by time") };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("starting a runtime")?.block_on(async {
        let clients = connect(server, plan.connections).await?;
        let until = clock::now() + duration;
        let mut streams = tokio::task::JoinSet::new();
        for client in clients {
            let caller = Caller {
                client,
                authority: server.to_string(),
                template: template.another()?,
                signer: Signer::new(secret),
                random: Random::fresh()?,
                keys: plan.keys,
            };
            streams.spawn(caller.call_until(until));
        }
        let mut outcome = Outcome { latency: Histogram::new(), allowed: 0, elapsed: duration };
        while let Some(done) = streams.join_next().await {
            let (latency, allowed) = done.context("a stream's task")??;
            outcome.latency.merge(&latency);
            outcome.allowed += allowed;
        }
        Ok(outcome)
    })
}

/// One sender for each stream.
async fn connect(server: SocketAddr, streams: usize) -> Result<Vec<SendRequest<Bytes>>> {
    let mut clients = Vec::with_capacity(streams);
    while clients.len() < streams {
        let socket = tokio::net::TcpStream::connect(server).await.context("connecting over HTTP/2")?;
        socket.set_nodelay(true).context("setting up a socket")?;
        let (client, connection) = h2::client::handshake(socket).await.context("the HTTP/2 handshake")?;
        // It ends with its last sender; what it ends with, the streams are told too.
        tokio::spawn(connection);
        let wanted = STREAMS.min(streams - clients.len());
        clients.extend(std::iter::repeat_n(client, wanted));
    }
    Ok(clients)
}

struct Caller {
    client: SendRequest<Bytes>,
    authority: String,
    template: RpcTemplate,
    signer: Signer,
    random: Random,
    keys: usize,
}

impl Caller {
    async fn call_until(mut self, until: Instant) -> Result<(Histogram, u64)> {
        let (mut latency, mut allowed) = (Histogram::new(), 0);
        loop {
            let sent_at = clock::now();
            let passed = self.call().await?;
            let now = clock::now();
            if now > until {
                return Ok((latency, allowed));
            }
            latency.record(now - sent_at);
            allowed += u64::from(passed);
        }
    }

    async fn call(&mut self) -> Result<bool> {
        let body = Bytes::copy_from_slice(self.template.fill(self.random.below(self.keys)));
        let mut signature = Vec::with_capacity(96);
        self.signer.sign(clock::unix_ms(), &body, &mut signature);
        let request = http::Request::post(format!("http://{}/v1/rpc", self.authority))
            .header("content-type", "application/json")
            .header("tidegate-signature", signature)
            .body(())
            .context("making a request")?;
        let mut ready = self.client.clone().ready().await.context("waiting for a stream")?;
        let (response, mut stream) = ready.send_request(request, false).context("opening a stream")?;
        stream.send_data(body.clone(), true).context("sending a body")?;
        let answered = tokio::time::timeout(SILENCE_MAX, read(response)).await;
        let (status, answer) = answered.context("waiting for an answer")??;
        if status != http::StatusCode::OK {
            bail!("{status}: {}", String::from_utf8_lossy(&answer));
        }
        rpc::read_answer(&body, &answer)
    }
}

/// Longer than the server's own deadline.
const SILENCE_MAX: Duration = Duration::from_secs(20);

async fn read(response: h2::client::ResponseFuture) -> Result<(http::StatusCode, Vec<u8>)> {
    let (head, mut body) = response.await.context("reading an answer")?.into_parts();
    let mut answer = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.context("reading an answer's body")?;
        body.flow_control().release_capacity(piece.len()).context("making room for more")?;
        answer.extend_from_slice(&piece);
    }
    Ok((head.status, answer))
}
