//! The document of the API, made from its handlers and shapes.

use axum::{Json, response::IntoResponse, response::Response};
use utoipa::{
    Modify, OpenApi,
    openapi::{
        OpenApi as Document,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use super::{apps, audit, tokens};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tidegate admin API",
        description = "Apps, their abuse defense, tokens and the audit. Every call carries a bearer token; what it \
                       must be able to do stands with the call: read, read:sensitive, write.",
    ),
    paths(
        apps::list, apps::abuse, apps::put, apps::replay, apps::traffic, apps::access_log,
        audit::list, tokens::list, tokens::create, tokens::revoke,
    ),
    modifiers(&BearerToken),
)]
struct Api;

struct BearerToken;

impl Modify for BearerToken {
    fn modify(&self, document: &mut Document) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
    }
}

/// The document is for everybody: it tells what the project's pages tell.
pub(super) async fn document() -> Response {
    Json(Api::openapi()).into_response()
}
