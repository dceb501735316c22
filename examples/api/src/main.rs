//! An API with route limits and a login on the guard store.
//!
//! Start `tidegate serve`, and beside it, in the same folder: `cargo run -p api`.
#![expect(clippy::print_stdout, reason = "it says where it listens")]

mod accounts;
mod login;
mod settings;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use axum::{
    Json, Router,
    extract::ConnectInfo,
    http::request::Parts,
    routing::{get, post},
};
use tidegate_client::{
    AttemptBudget, AttemptLimiter, Caller, RouteLimitLayer, RouteLimiter, Selection, WindowLimit,
};

use accounts::Accounts;

/// What the handlers share.
struct App {
    accounts: Accounts,
    attempts: AttemptLimiter,
}

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let listener = tokio::net::TcpListener::bind(settings::listen()).await.context("listening")?;
    println!("api listens on http://{}", listener.local_addr().context("asking where")?);
    let service = app(&settings::selection())?.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await.context("serving")
}

/// The routes: everything is limited by source, and the login by source and account beside that.
fn app(selection: &Selection) -> Result<Router> {
    let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
    let windows = [WindowLimit::bucket(30, minute), WindowLimit::sliding(1000, hour)];
    let routes = Arc::new(RouteLimiter::new(selection, "api", windows)?);

    let budget = |limit| AttemptBudget::new(limit, Duration::from_secs(900));
    let attempts = AttemptLimiter::new(selection, "login", budget(20), budget(5))?;
    let app = Arc::new(App { accounts: Accounts::of_the_example()?, attempts });

    Ok(Router::new()
        .route("/items", get(async || Json(["a lamp", "a chair"])))
        .route("/login", post(login::login))
        .with_state(app)
        .layer(RouteLimitLayer::new(routes, by_connection)))
}

/// Who is on the other end of the connection. Behind a proxy of your own this is the proxy: read the header
/// that it sets then, and only from it.
fn by_connection(head: &Parts) -> Caller<'_> {
    let peer = head.extensions.get::<ConnectInfo<SocketAddr>>();
    peer.map_or(Caller::unknown(), |ConnectInfo(address)| Caller::from(address.ip()))
}
