//! Scripted visitors of an app, one of them abusive: what the dashboard has to show when nobody else comes.
//!
//! Each visitor has an address of its own on this machine (127.0.0.0/8), as visitors of a site do.

use std::{
    io::Write,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, timeout},
};

/// Where the visitors go, and how long they stay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visit {
    pub(super) app: SocketAddr,
    pub(super) lasts: Duration,
}

/// Somebody who visits.
#[derive(Debug, Clone, Copy)]
struct Visitor {
    address: Ipv4Addr,
    agent: &'static str,
    every: Duration,
    paths: &'static [&'static str],
    greedy: bool,
}

/// What became of requests.
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    served: u64,
    refused: u64,
    lost: u64,
}

const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const SCRAPER: &str = "python-requests/2.32";
const PAGES: &[&str] = &["/", "/echo", "/products", "/products/17", "/cart"];
const CATALOGUE: &[&str] = &["/products?page=1", "/products?page=2", "/products?page=3", "/products?page=4"];
/// People look at a page for a while.
const PEOPLE: [(u8, u64); 6] = [(2, 700), (3, 1100), (4, 900), (5, 1500), (6, 600), (7, 1900)];
/// The scraper does not: 25 requests a second.
const SCRAPER_EVERY: Duration = Duration::from_millis(40);
/// A visitor gives up on an answer after this time.
const PATIENCE: Duration = Duration::from_secs(5);

/// Lets the visitors come, and tells what became of their requests. None: the app does not answer at all.
pub(super) async fn visit(visit: Visit, out: &mut dyn Write) -> std::io::Result<Option<()>> {
    if connect(visit.app, Ipv4Addr::LOCALHOST).await.is_none() {
        return Ok(None);
    }
    let people = PEOPLE.map(|(last, every_ms)| Visitor {
        address: Ipv4Addr::new(127, 0, 0, last),
        agent: BROWSER,
        every: Duration::from_millis(every_ms),
        paths: PAGES,
        greedy: false,
    });
    let scraper = Visitor {
        address: Ipv4Addr::new(127, 0, 0, 66),
        agent: SCRAPER,
        every: SCRAPER_EVERY,
        paths: CATALOGUE,
        greedy: true,
    };
    let until = Instant::now() + visit.lasts;
    let mut visits = JoinSet::new();
    for visitor in people.into_iter().chain([scraper]) {
        visits.spawn(async move { (visitor.greedy, stay(visitor, visit.app, until).await) });
    }
    let (mut of_people, mut of_scraper) = (Told::default(), Told::default());
    while let Some(ended) = visits.join_next().await {
        // An error is a panic of the visitor, whose requests are lost with it.
        let Ok((greedy, told)) = ended else { continue };
        let sum = if greedy { &mut of_scraper } else { &mut of_people };
        *sum = Told {
            served: sum.served + told.served,
            refused: sum.refused + told.refused,
            lost: sum.lost + told.lost,
        };
    }
    writeln!(out, "   six people:  {}", words(of_people))?;
    writeln!(out, "   the scraper: {}", words(of_scraper))?;
    Ok(Some(()))
}

fn words(told: Told) -> String {
    let Told { served, refused, lost } = told;
    let lost = if lost == 0 { String::new() } else { format!(", {lost} lost") };
    format!("{} requests, {served} answered, {refused} refused{lost}", served + refused + told.lost)
}

/// Requests until the time is up, each at its moment, over one connection while that lasts.
async fn stay(visitor: Visitor, app: SocketAddr, until: Instant) -> Told {
    let mut told = Told::default();
    let mut connection = None;
    let mut every = interval(visitor.every);
    every.set_missed_tick_behavior(MissedTickBehavior::Skip);
    for number in 0.. {
        every.tick().await;
        if Instant::now() >= until {
            break;
        }
        let path = visitor.paths[number % visitor.paths.len()];
        match timeout(PATIENCE, ask(&mut connection, visitor, app, path)).await.ok().flatten() {
            Some(status) if status.is_success() => told.served += 1,
            Some(_) => told.refused += 1,
            None => {
                connection = None;
                told.lost += 1;
            }
        }
    }
    told
}

async fn ask(
    connection: &mut Option<SendRequest<Empty<Bytes>>>,
    visitor: Visitor,
    app: SocketAddr,
    path: &str,
) -> Option<http::StatusCode> {
    if connection.as_ref().is_none_or(SendRequest::is_closed) {
        *connection = Some(connect(app, visitor.address).await?);
    }
    let sender = connection.as_mut()?;
    sender.ready().await.ok()?;
    let request = Request::get(path)
        .header(header::HOST, app.to_string())
        .header(header::USER_AGENT, visitor.agent)
        .body(Empty::new())
        .ok()?;
    let answer = sender.send_request(request).await.ok()?;
    let status = answer.status();
    answer.into_body().collect().await.ok()?;
    Some(status)
}

/// A connection from that address of this machine; from the usual one where the system has no other.
async fn connect(app: SocketAddr, from: Ipv4Addr) -> Option<SendRequest<Empty<Bytes>>> {
    let stream = match bound(app, from) {
        Some(socket) => socket.connect(app).await.ok()?,
        None => TcpStream::connect(app).await.ok()?,
    };
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    Some(sender)
}

fn bound(app: SocketAddr, from: Ipv4Addr) -> Option<TcpSocket> {
    let is_here = matches!(app, SocketAddr::V4(app) if app.ip().is_loopback());
    let socket = if is_here { TcpSocket::new_v4().ok()? } else { return None };
    socket.bind((from, 0).into()).ok()?;
    Some(socket)
}
