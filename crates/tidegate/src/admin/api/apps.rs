//! Apps and their abuse defense.

#![expect(unused_qualifications, reason = "utoipa writes the parameters' types out by path")]

use std::sync::Arc;

use axum::{
    Json,
    body::Bytes,
    extract::{Path, Query, State, rejection::QueryRejection},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_ingress::defense::AbuseView;
use utoipa::IntoParams;

use super::{Refused, shapes};
use crate::{
    admin::{
        Admin,
        apps::{PolicyRefused, Window},
    },
    config::Ability,
};

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    /// `minute`, `hour` (where it is left out) or `day`.
    #[serde(default)]
    #[param(value_type = String, required = false)]
    window: Window,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct AskedLog {
    /// How many entries: 1 to 10000.
    #[serde(default = "limit_default")]
    limit: usize,
}

fn limit_default() -> usize {
    100
}

/// The answer stays within some megabytes.
const LOG_LIMIT_MAX: usize = 10_000;

type Found = Result<Response, Refused>;

/// Every app, with the last hour of each.
#[utoipa::path(get, path = "/api/v1/apps", tag = "apps", security(("token" = ["read"])),
    responses((status = 200, body = shapes::Apps), (status = 401, body = shapes::ErrorBody), (status = 403, body = shapes::ErrorBody)))]
pub(super) async fn list(State(admin): State<Arc<Admin>>, headers: HeaderMap) -> Found {
    admin.access.bearer(&headers)?.needs(Ability::Read)?;
    let apps = admin.apps.0.as_ref().map(|defense| defense.overview()).unwrap_or_default();
    Ok(Json(json!({"apps": apps})).into_response())
}

/// The policy of an app, how it stands and what it counted.
#[utoipa::path(get, path = "/api/v1/apps/{app}/abuse", tag = "apps", security(("token" = ["read"])),
    params(("app" = String, Path, description = "The app's name"), Asked),
    responses((status = 200, body = shapes::Abuse, headers(("ETag" = String, description = "The version"))),
        (status = 401, body = shapes::ErrorBody), (status = 403, body = shapes::ErrorBody), (status = 404, body = shapes::ErrorBody)))]
pub(super) async fn abuse(
    State(admin): State<Arc<Admin>>,
    Path(app): Path<String>,
    headers: HeaderMap,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Found {
    admin.access.bearer(&headers)?.needs(Ability::Read)?;
    let Query(Asked { window }) = asked.map_err(|rejection| query_fault(&rejection))?;
    let view = admin.apps.0.as_ref().and_then(|defense| defense.view(&app, window.of_defense()));
    Ok(with_tag(&view.ok_or(Refused::NoSuchApp)?))
}

/// Puts a policy in force. With `If-Match` only that version is replaced.
#[utoipa::path(put, path = "/api/v1/apps/{app}/abuse", tag = "apps", security(("token" = ["write"])),
    params(("app" = String, Path, description = "The app's name"),
        ("If-Match" = Option<String>, Header, description = "The version that is replaced, as its ETag")),
    request_body = shapes::Policy,
    responses((status = 200, body = shapes::Abuse, headers(("ETag" = String, description = "The version"))),
        (status = 400, body = shapes::ErrorBody), (status = 401, body = shapes::ErrorBody), (status = 403, body = shapes::ErrorBody),
        (status = 404, body = shapes::ErrorBody), (status = 413, body = shapes::ErrorBody),
        (status = 412, body = shapes::ErrorBody, description = "Somebody else has changed it meanwhile"),
        (status = 422, body = shapes::ErrorBody, description = "The policy has faults; all are named"),
        (status = 503, body = shapes::ErrorBody)))]
pub(super) async fn put(
    State(admin): State<Arc<Admin>>,
    Path(app): Path<String>,
    headers: HeaderMap,
    document: Bytes,
) -> Found {
    let caller = admin.access.bearer(&headers)?;
    caller.needs(Ability::Write)?;
    let if_match = if_match(&headers)?;
    Ok(with_tag(&admin.apps.put(&app, if_match, &document, &caller.name).await?))
}

/// What a policy would have done to the requests that the access log still holds. It changes nothing.
#[utoipa::path(post, path = "/api/v1/apps/{app}/abuse/replay", tag = "apps", security(("token" = ["read:sensitive"])),
    params(("app" = String, Path, description = "The app's name")), request_body = shapes::Policy,
    responses((status = 200, body = shapes::Replay), (status = 401, body = shapes::ErrorBody), (status = 403, body = shapes::ErrorBody),
        (status = 404, body = shapes::ErrorBody), (status = 413, body = shapes::ErrorBody), (status = 422, body = shapes::ErrorBody),
        (status = 503, body = shapes::ErrorBody)))]
pub(super) async fn replay(
    State(admin): State<Arc<Admin>>,
    Path(app): Path<String>,
    headers: HeaderMap,
    document: Bytes,
) -> Found {
    admin.access.bearer(&headers)?.needs(Ability::ReadSensitive)?;
    Ok(Json(admin.apps.replay(&app, document.to_vec()).await?).into_response())
}

/// The traffic of an app over a window.
#[utoipa::path(get, path = "/api/v1/apps/{app}/traffic", tag = "apps", security(("token" = ["read"])),
    params(("app" = String, Path, description = "The app's name"), Asked),
    responses((status = 200, body = shapes::Traffic), (status = 401, body = shapes::ErrorBody), (status = 403, body = shapes::ErrorBody),
        (status = 404, body = shapes::ErrorBody)))]
pub(super) async fn traffic(
    State(admin): State<Arc<Admin>>,
    Path(app): Path<String>,
    headers: HeaderMap,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Found {
    admin.access.bearer(&headers)?.needs(Ability::Read)?;
    let Query(Asked { window }) = asked.map_err(|rejection| query_fault(&rejection))?;
    let view = admin.apps.0.as_ref().and_then(|defense| defense.traffic(&app, window.of_defense()));
    Ok(Json(view.ok_or(Refused::NoSuchApp)?).into_response())
}

/// The newest requests of an app, newest first, without whose they are.
#[utoipa::path(get, path = "/api/v1/apps/{app}/access-log", tag = "apps", security(("token" = ["read"])),
    params(("app" = String, Path, description = "The app's name"), AskedLog),
    responses((status = 200, body = shapes::AccessLog), (status = 401, body = shapes::ErrorBody), (status = 403, body = shapes::ErrorBody),
        (status = 404, body = shapes::ErrorBody)))]
pub(super) async fn access_log(
    State(admin): State<Arc<Admin>>,
    Path(app): Path<String>,
    headers: HeaderMap,
    asked: Result<Query<AskedLog>, QueryRejection>,
) -> Found {
    admin.access.bearer(&headers)?.needs(Ability::Read)?;
    let Query(AskedLog { limit }) = asked.map_err(|rejection| query_fault(&rejection))?;
    if !(1..=LOG_LIMIT_MAX).contains(&limit) {
        return Err(Refused::BadRequest(format!("limit: must be from 1 to {LOG_LIMIT_MAX}")));
    }
    let entries = admin.apps.0.as_ref().and_then(|defense| defense.access_log(&app, limit));
    Ok(Json(json!({"entries": entries.ok_or(Refused::NoSuchApp)?})).into_response())
}

impl From<PolicyRefused> for Refused {
    fn from(refused: PolicyRefused) -> Self {
        match refused {
            PolicyRefused::NoSuchApp => Self::NoSuchApp,
            PolicyRefused::Invalid(faults) => {
                Self::InvalidPolicy(serde_json::to_value(faults).unwrap_or(Value::Null))
            }
            PolicyRefused::Stale { version } => Self::Stale { version },
            PolicyRefused::Unavailable(why) => Self::Unavailable(why),
        }
    }
}

fn query_fault(rejection: &QueryRejection) -> Refused {
    Refused::BadRequest(rejection.body_text())
}

fn with_tag(view: &AbuseView) -> Response {
    let mut answer = (StatusCode::OK, Json(view)).into_response();
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", view.version)) {
        answer.headers_mut().insert(header::ETAG, tag);
    }
    answer
}

/// The version that `If-Match` names; none where there is no such header, or it takes any.
fn if_match(headers: &HeaderMap) -> Result<Option<u64>, Refused> {
    let mut values = headers.get_all(header::IF_MATCH).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) if value.as_bytes() == b"*" => return Ok(None),
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    };
    let bare =
        value.map(|value| value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value));
    let version = bare.and_then(|text| text.parse().ok());
    let fault = || Refused::BadRequest("If-Match: must be one version, such as \"3\"".to_owned());
    version.map(Some).ok_or_else(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_if_match() {
        let table = [
            (&[][..], Some(None)),
            (&["*"], Some(None)),
            (&["\"3\""], Some(Some(3))),
            (&["3"], Some(Some(3))),
            (&["\"x\""], None),
            (&["\"3\", \"4\""], None),
            (&["3", "4"], None),
            (&["-1"], None),
            (&[""], None),
        ];
        for (values, expected) in table {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::IF_MATCH, HeaderValue::from_static(value));
            }
            assert_eq!(if_match(&headers).ok(), expected, "{values:?}");
        }
    }
}
