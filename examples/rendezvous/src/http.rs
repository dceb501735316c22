//! The HTTP face: games are listed and joined. It never says where an introduction goes.

mod answer;
mod caller;

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Json, Router,
    extract::{Path, State, rejection::JsonRejection},
    http::StatusCode,
    routing::{get, post, put},
};
use serde::{Deserialize, Serialize};

use crate::{
    capability::{AttemptId, Capability},
    edge::Edge,
    hex,
    registry::{ListingId, Metadata},
    service::{Service, Shown},
};
use answer::Failure;
use caller::Caller;

/// What a handler needs.
#[derive(Clone)]
pub struct Face {
    /// The service.
    pub service: Arc<Service>,
    /// Time and random bytes.
    pub edge: Arc<dyn Edge>,
}

/// The most listings in one answer.
const LISTED_MAX: usize = 100;

/// The routes, without admission before them.
pub fn routes(face: Face) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/v1/listings", post(create).get(list))
        .route("/v1/listings/{id}", put(update).delete(delete))
        .route("/v1/listings/{id}/renew", post(renew))
        .route("/v1/listings/{id}/attempts", post(start_attempt).get(attempts))
        .fallback(async || Failure::NotFound)
        .method_not_allowed_fallback(async || Failure::Method)
        .with_state(face)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Game {
    name: String,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct ListingBody {
    id: String,
    name: String,
    metadata: BTreeMap<String, String>,
    expires_at_ms: u64,
}

#[derive(Serialize)]
struct Listings {
    listings: Vec<ListingBody>,
}

#[derive(Serialize)]
struct AttemptBody {
    attempt: String,
    capability: String,
    expires_at_ms: u64,
}

#[derive(Serialize)]
struct Attempts {
    attempts: Vec<AttemptBody>,
}

async fn create(
    State(face): State<Face>,
    caller: Caller,
    game: Result<Json<Game>, JsonRejection>,
) -> Result<(StatusCode, Json<ListingBody>), Failure> {
    let metadata = metadata(game)?;
    let id = ListingId(face.edge.random()?);
    let shown = face.service.create(id, &caller.principal, metadata, face.edge.now_ms())?;
    Ok((StatusCode::CREATED, Json(shown.into())))
}

async fn list(State(face): State<Face>, caller: Caller) -> Json<Listings> {
    let listings = face.service.list(&caller.principal, LISTED_MAX, face.edge.now_ms());
    Json(Listings { listings: listings.into_iter().map(Into::into).collect() })
}

async fn renew(
    State(face): State<Face>,
    caller: Caller,
    id: Path<String>,
) -> Result<Json<ListingBody>, Failure> {
    let shown = face.service.renew(listing(&id)?, &caller.principal, face.edge.now_ms())?;
    Ok(Json(shown.into()))
}

async fn update(
    State(face): State<Face>,
    caller: Caller,
    id: Path<String>,
    game: Result<Json<Game>, JsonRejection>,
) -> Result<Json<ListingBody>, Failure> {
    let metadata = metadata(game)?;
    let shown = face.service.update(listing(&id)?, &caller.principal, metadata, face.edge.now_ms())?;
    Ok(Json(shown.into()))
}

async fn delete(State(face): State<Face>, caller: Caller, id: Path<String>) -> Result<StatusCode, Failure> {
    face.service.delete(listing(&id)?, &caller.principal, face.edge.now_ms())?;
    Ok(StatusCode::NO_CONTENT)
}

async fn start_attempt(
    State(face): State<Face>,
    caller: Caller,
    id: Path<String>,
) -> Result<(StatusCode, Json<AttemptBody>), Failure> {
    let (id, attempt) = (listing(&id)?, AttemptId(face.edge.random()?));
    let capability = face.service.start_attempt(id, attempt, &caller.principal, face.edge.now_ms())?;
    Ok((StatusCode::CREATED, Json(AttemptBody::from(&capability))))
}

async fn attempts(
    State(face): State<Face>,
    caller: Caller,
    id: Path<String>,
) -> Result<Json<Attempts>, Failure> {
    let attempts = face.service.attempts(listing(&id)?, &caller.principal, face.edge.now_ms())?;
    Ok(Json(Attempts { attempts: attempts.iter().map(AttemptBody::from).collect() }))
}

/// An id that can't be one is answered like one that is not there.
fn listing(id: &str) -> Result<ListingId, Failure> {
    hex::read(id).map(ListingId).ok_or(Failure::NotFound)
}

fn metadata(game: Result<Json<Game>, JsonRejection>) -> Result<Metadata, Failure> {
    let Json(Game { name, metadata }) = game?;
    Ok(Metadata::new(name, metadata)?)
}

impl From<Shown> for ListingBody {
    fn from(shown: Shown) -> Self {
        Self {
            id: hex::text(&shown.id.0),
            name: shown.metadata.name().to_owned(),
            metadata: shown.metadata.pairs().clone(),
            expires_at_ms: shown.expires_at_ms,
        }
    }
}

impl From<&Capability> for AttemptBody {
    fn from(capability: &Capability) -> Self {
        Self {
            attempt: hex::text(&capability.claims().attempt.0),
            capability: capability.expose(),
            expires_at_ms: capability.claims().expires_at_ms,
        }
    }
}
