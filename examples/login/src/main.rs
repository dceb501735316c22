//! A login and a password reset, limited on whichever store is configured.
//!
//! ```sh
//! cargo run -p login
//! curl -i localhost:8080/login --json '{"account": "alice@example.com", "password": "a guess"}'
//! curl -i localhost:8080/password-reset --json '{"account": "alice@example.com"}'
//! ```
//!
//! It counts in memory; `TIDEGATE_RATE_LIMIT__STORE=embedded` keeps counts over a restart, and
//! `TIDEGATE_RATE_LIMIT__STORE=postgres` with `TIDEGATE_RATE_LIMIT__URL` shares them among instances. `limits.rs`
//! has all that the application says of limits; `answers.rs` what a client sees of them.

mod accounts;
mod answers;
mod limits;

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context;
use axum::{
    Json, Router,
    extract::{ConnectInfo, DefaultBodyLimit, State},
    response::Response,
    routing::post,
};
use serde::Deserialize;
use tidegate_rate_limit::{Attempt, Configuration};
use tokio::net::TcpListener;
use tracing::{info, warn};

use crate::{accounts::Accounts, limits::Limited};

struct Application {
    accounts: Accounts,
    limited: Limited,
}

#[derive(Deserialize)]
struct Login {
    account: String,
    password: String,
}

#[derive(Deserialize)]
struct Reset {
    account: String,
}

/// A form has a name and a password.
const BODY_BYTES_MAX: usize = 4096;
const LISTEN: &str = "127.0.0.1:8080";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let store = Configuration::from_variables(std::env::vars_os())?.open().await?;
    let application =
        Application { accounts: Accounts::demo()?, limited: Limited::new(store.limit_store())? };
    let router = Router::new()
        .route("/login", post(login))
        .route("/password-reset", post(reset))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(Arc::new(application));

    let listen = std::env::args().nth(1);
    let listener = TcpListener::bind(listen.as_deref().unwrap_or(LISTEN)).await.context("listening")?;
    info!("listening on http://{}", listener.local_addr().context("listening")?);
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).with_graceful_shutdown(stopped()).await.context("serving")?;
    store.shutdown().await;
    Ok(())
}

async fn login(
    State(application): State<Arc<Application>>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
    Json(Login { account, password }): Json<Login>,
) -> Response {
    let reserved = match application.limited.login(&account, client).await {
        Ok(Attempt::Reserved(reserved)) => reserved,
        Ok(Attempt::Refused(decision)) => return answers::too_many(&decision),
        Err(error) => return answers::unavailable(&error),
    };
    if !application.accounts.verify(&account, password).await {
        return answers::wrong(&reserved.decision);
    }
    if let Err(error) = reserved.refund().await {
        // The attempt stays counted until its period ends; that is no reason to turn its owner away.
        warn!(error = &error as &dyn std::error::Error, "a success could not be given back");
    }
    answers::welcome()
}

async fn reset(
    State(application): State<Arc<Application>>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
    Json(Reset { account }): Json<Reset>,
) -> Response {
    match application.limited.reset(&account, client).await {
        // Here a mail would be sent, off the request, where there is such an account.
        Ok(decision) if decision.allowed => answers::sent(&decision),
        Ok(decision) => answers::too_many(&decision),
        Err(error) => answers::unavailable(&error),
    }
}

async fn stopped() {
    if let Err(error) = tokio::signal::ctrl_c().await {
        warn!(error = &error as &dyn std::error::Error, "signals can't be waited for");
        std::future::pending::<()>().await;
    }
}
