//! Tokens: listed, made and revoked. Nobody makes or revokes one that may do more than their own.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tidegate_store::clock::wall_ms;
use utoipa::ToSchema;

use super::{Refused, audit, body, shapes};
use crate::{
    admin::{
        Admin,
        access::{Caller, Origin},
        tokens::TokenError,
    },
    config::Ability,
};

/// A token, without the token itself.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Token {
    name: String,
    /// `read`, `read:sensitive`, `write`, `operator`.
    abilities: Vec<&'static str>,
    /// `configuration`, `first_start` or `created`; only the last can be revoked here.
    origin: &'static str,
    /// When it was made, in ms since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_ms: Option<u64>,
}

/// Every token.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Tokens {
    tokens: Vec<Token>,
}

/// A token to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewToken {
    /// Who will hold it: 1 to 64 characters.
    name: String,
    /// What it may do.
    abilities: Vec<String>,
}

/// A token just made.
#[derive(Serialize, ToSchema)]
pub(super) struct MadeToken {
    name: String,
    abilities: Vec<&'static str>,
    /// The token. It is told this once: only its hash is kept.
    token: String,
}

/// Every token that is known, without the tokens themselves.
#[utoipa::path(get, path = "/api/v1/tokens", tag = "tokens", security(("token" = ["read"])),
    responses((status = 200, body = Tokens), (status = 401, body = shapes::ErrorBody), (status = 403, body = shapes::ErrorBody)))]
pub(super) async fn list(
    State(admin): State<Arc<Admin>>,
    headers: HeaderMap,
) -> Result<Json<Tokens>, Refused> {
    admin.access.bearer(&headers)?.needs(Ability::Read)?;
    let configured = admin.access.configured();
    let configured = configured.into_iter().map(|(caller, origin)| token(caller, origin, None));
    let stored = admin.access.stored.list();
    let stored = stored.iter().map(|each| token(each.caller(), Origin::Created, Some(each.created_ms)));
    Ok(Json(Tokens { tokens: configured.chain(stored).collect() }))
}

/// Makes a token.
#[utoipa::path(post, path = "/api/v1/tokens", tag = "tokens", security(("token" = ["write"])), request_body = NewToken,
    responses((status = 201, body = MadeToken), (status = 400, body = shapes::ErrorBody), (status = 401, body = shapes::ErrorBody),
        (status = 403, body = shapes::ErrorBody), (status = 409, body = shapes::ErrorBody), (status = 413, body = shapes::ErrorBody)))]
pub(super) async fn create(
    State(admin): State<Arc<Admin>>,
    headers: HeaderMap,
    sent: axum::body::Bytes,
) -> Result<Response, Refused> {
    let caller = admin.access.bearer(&headers)?;
    caller.needs(Ability::Write)?;
    let NewToken { name, abilities } = body::json(&sent)?;
    let abilities = abilities.iter().map(|name| ability(name)).collect::<Result<Vec<_>, _>>()?;
    if abilities.is_empty() {
        return Err(Refused::BadRequest("abilities: without any, a token could do nothing".to_owned()));
    }
    holds_all(&caller, &abilities)?;
    // Two of one name could not be told apart in the audit.
    if admin.access.configured().iter().any(|(other, _)| other.name == name) {
        return Err(TokenError::Taken.into());
    }
    let names: Vec<_> = abilities.iter().map(|ability| ability.name()).collect();
    let admin_then = Arc::clone(&admin);
    let name_then = name.clone();
    let make = move || admin_then.access.stored.create(&name_then, &abilities, wall_ms());
    let secret = tokio::task::spawn_blocking(make).await.map_err(|_| unfinished())??;
    audit::note(&admin, &caller.name, "token_created", &format!("{name}: {}", names.join(", "))).await;
    let made = MadeToken { name, abilities: names, token: secret.expose().to_owned() };
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

/// Revokes a token that was made here: it is refused from then on, and whoever signed in with it is out.
#[utoipa::path(delete, path = "/api/v1/tokens/{name}", tag = "tokens", security(("token" = ["write"])),
    params(("name" = String, Path, description = "The token's name")),
    responses((status = 200, description = "Revoked"), (status = 403, body = shapes::ErrorBody), (status = 404, body = shapes::ErrorBody)))]
pub(super) async fn revoke(
    State(admin): State<Arc<Admin>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let caller = admin.access.bearer(&headers)?;
    caller.needs(Ability::Write)?;
    let stored = admin.access.stored.list();
    let revoked = stored.iter().find(|token| token.name == name).ok_or(TokenError::Unknown)?;
    holds_all(&caller, &revoked.caller().abilities)?;
    let admin_then = Arc::clone(&admin);
    let name_then = name.clone();
    let revoke = move || admin_then.access.stored.revoke(&name_then);
    tokio::task::spawn_blocking(revoke).await.map_err(|_| unfinished())??;
    audit::note(&admin, &caller.name, "token_revoked", &name).await;
    Ok(Json(json!({"revoked": name})).into_response())
}

fn token(caller: Caller, origin: Origin, created_ms: Option<u64>) -> Token {
    let abilities = caller.abilities.iter().map(|ability| ability.name()).collect();
    Token { name: caller.name, abilities, origin: origin.name(), created_ms }
}

fn ability(name: &str) -> Result<Ability, Refused> {
    let found = Ability::ALL.into_iter().find(|ability| ability.name() == name);
    found.ok_or_else(|| {
        let known = Ability::ALL.map(Ability::name).join(", ");
        Refused::BadRequest(format!("abilities: there is no {name:?}; there are {known}"))
    })
}

fn holds_all(caller: &Caller, abilities: &[Ability]) -> Result<(), Refused> {
    abilities.iter().try_for_each(|ability| caller.needs(*ability)).map_err(Refused::Denied)
}

fn unfinished() -> Refused {
    Refused::Unavailable("the tokens were not changed".to_owned())
}
