//! HTTP at a steady rate, with and without a flood of datagrams on the same process.

use std::{
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use axum::{Router, routing::get};
use tidegate_admission::{
    AdmissionLayer, Clock, HttpAdmission, Operation, Profile, RateLimited, Scope, Seed, StageTwo, UdpGate,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
};

use super::{Settings, ample};
use crate::{bench::histogram::Histogram, clock};

/// Where datagrams are sent meanwhile.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Flood {
    None,
    /// To a socket that nobody reads: what the sender and the kernel cost.
    Elsewhere,
    Gate,
}

#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) flood: Flood,
    pub(crate) turns: Vec<Turn>,
}

#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) latency: Histogram,
    pub(crate) seconds: f64,
    pub(crate) sent: u64,
    pub(crate) read: u64,
    pub(crate) http_keys: usize,
}

/// Of the HTTP client.
pub(crate) const CONNECTIONS: usize = 16;
const DATAGRAM_BYTES: usize = 128;

/// Ends the threads of a service when it is dropped.
struct Service {
    http: SocketAddr,
    udp: SocketAddr,
    admission: HttpAdmission,
    read: Arc<AtomicU64>,
    _runtimes: [Runtime; 2],
}

pub(super) fn measure(settings: &Settings) -> Result<Vec<Case>> {
    let service = Service::start()?;
    let floods = [Flood::None, Flood::Elsewhere, Flood::Gate];
    let mut cases = floods.map(|flood| Case { flood, turns: Vec::new() });
    for _ in 0..settings.rounds {
        for case in &mut cases {
            let turn = service.turn(settings, case.flood)?;
            let p99 = turn.latency.quantile_us(0.99);
            println!("flood: {:<27} p99 {p99:>7.0} us, {} datagrams sent", case.flood.name(), turn.sent);
            case.turns.push(turn);
        }
    }
    Ok(cases.into())
}

impl Flood {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Elsewhere => "to a socket that nobody reads",
            Self::Gate => "to the gate",
        }
    }
}

impl Service {
    fn start() -> Result<Self> {
        let profile = Profile { udp: Profile::default().udp, ..ample(100_000)? };
        let admission = HttpAdmission::new(&profile, Seed::random()?, Clock::machine())?;
        let gate = UdpGate::new(&profile, Seed::random()?)?;
        let read = Arc::new(AtomicU64::new(0));
        let runtimes = [runtime("http")?, runtime("udp")?];
        let listener = runtimes[0].block_on(TcpListener::bind("127.0.0.1:0")).context("listening")?;
        let socket = runtimes[1].block_on(tokio::net::UdpSocket::bind("127.0.0.1:0")).context("binding")?;
        let (http, udp) = (listener.local_addr()?, socket.local_addr()?);
        let layer = AdmissionLayer::new(admission.clone(), |_| Operation::optional(0));
        let app = Router::new().route("/", get(answer)).layer(layer);
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        runtimes[0].spawn(async move { axum::serve(listener, app).await });
        runtimes[1].spawn(mediate(socket, gate, Arc::clone(&read)));
        Ok(Self { http, udp, admission, read, _runtimes: runtimes })
    }

    fn turn(&self, settings: &Settings, flood: Flood) -> Result<Turn> {
        let (over, before) = (Arc::new(AtomicBool::new(false)), self.read.load(Ordering::Relaxed));
        let started = clock::now();
        let unread = UdpSocket::bind("127.0.0.1:0").context("binding")?;
        let target = match flood {
            Flood::None => None,
            Flood::Elsewhere => Some(unread.local_addr()?),
            Flood::Gate => Some(self.udp),
        };
        let flood = target.map(|target| {
            let over = Arc::clone(&over);
            thread::spawn(move || send_until(&over, target))
        });
        let latency =
            Builder::new_current_thread().enable_all().build()?.block_on(requests(self.http, settings));
        over.store(true, Ordering::Relaxed);
        let seconds = started.elapsed().as_secs_f64();
        let sent = flood
            .map_or(Ok(Ok(0)), thread::JoinHandle::join)
            .map_err(|_| anyhow::anyhow!("the flood failed"))??;
        let read = self.read.load(Ordering::Relaxed) - before;
        Ok(Turn { latency: latency?, seconds, sent, read, http_keys: self.admission.tracked_keys() })
    }
}

async fn answer(two: StageTwo) -> Result<&'static str, RateLimited> {
    two.admit(&Scope::new().tenant(b"tenant").principal(b"principal").resource(b"resource"))?;
    Ok("welcome")
}

/// Reads, admits and drops: whatever a mediator would do costs the same with HTTP beside it or not.
async fn mediate(socket: tokio::net::UdpSocket, gate: UdpGate, read: Arc<AtomicU64>) -> std::io::Result<()> {
    let (clock, mut datagram) = (Clock::machine(), [0; 2048]);
    loop {
        socket.readable().await?;
        let now_ms = clock.now_ms();
        if let Some(ms) = gate.closed_for_ms(now_ms) {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            continue;
        }
        for _ in 0..BATCH {
            let Ok((bytes, from)) = socket.try_recv_from(&mut datagram) else { break };
            read.fetch_add(1, Ordering::Relaxed);
            let _ = gate.stage_one(now_ms, from.ip(), datagram[0], bytes);
        }
    }
}

fn send_until(over: &AtomicBool, to: SocketAddr) -> Result<u64> {
    // On Linux this is of the thread alone.
    rustix::process::nice(19).context("giving way")?;
    let socket = UdpSocket::bind("127.0.0.1:0").context("binding")?;
    socket.connect(to).context("connecting")?;
    let (datagram, mut sent) = ([1; DATAGRAM_BYTES], 0);
    while !over.load(Ordering::Relaxed) {
        // A full buffer is the kernel's way to drop.
        sent += u64::from(socket.send(&datagram).is_ok());
    }
    Ok(sent)
}

async fn requests(to: SocketAddr, settings: &Settings) -> Result<Histogram> {
    let each = Duration::from_secs(1) * u32::try_from(CONNECTIONS)? / settings.requests_per_second;
    let until = clock::now() + settings.turn();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..CONNECTIONS {
        let first = clock::now() + each * u32::try_from(number)? / u32::try_from(CONNECTIONS)?;
        tasks.spawn(on_one_connection(to, first, each, until));
    }
    let mut latency = Histogram::new();
    while let Some(one) = tasks.join_next().await {
        latency.merge(&one.context("a client")??);
    }
    Ok(latency)
}

async fn on_one_connection(
    to: SocketAddr,
    first: Instant,
    each: Duration,
    until: Instant,
) -> Result<Histogram> {
    let mut stream = TcpStream::connect(to).await.context("connecting")?;
    stream.set_nodelay(true)?;
    let (mut latency, mut due, mut answer) = (Histogram::new(), first, [0; 2048]);
    while due < until {
        tokio::time::sleep_until(due.into()).await;
        stream.write_all(b"GET / HTTP/1.1\r\nhost: bench\r\n\r\n").await?;
        let mut bytes = 0;
        while !answer[..bytes].ends_with(b"welcome") {
            match stream.read(&mut answer[bytes..]).await? {
                0 => anyhow::bail!("no welcome: {}", String::from_utf8_lossy(&answer[..bytes])),
                more => bytes += more,
            }
        }
        latency.record(due.elapsed());
        due += each;
    }
    Ok(latency)
}

fn runtime(name: &str) -> Result<Runtime> {
    let runtime = Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build();
    runtime.context("starting a runtime")
}

/// Datagrams that share one reading of the clock.
const BATCH: usize = 64;
