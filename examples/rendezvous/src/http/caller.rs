//! Who asks: a bearer token's principal, and the second stage of admission with it.

use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::{header, request::Parts},
};
use tidegate_admission::{Scope, StageTwo};

use super::{Face, answer::Failure};
use crate::registry::Principal;

/// An authenticated caller.
pub(super) struct Caller {
    pub(super) principal: Principal,
}

impl FromRequestParts<Face> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, face: &Face) -> Result<Self, Failure> {
        let mut values = parts.headers.get_all(header::AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(Failure::Unauthenticated);
        };
        let token = value
            .as_bytes()
            .split_at_checked(7)
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"Bearer "));
        let principal = token.and_then(|(_, token)| face.service.principal(token));
        let principal = principal.ok_or(Failure::Unauthenticated)?;
        // As it was asked for, whether it is there or not.
        let resource = RawPathParams::from_request_parts(parts, face).await.ok();
        let resource = resource.iter().flatten().map(|(_, id)| id).next();
        let scope = Scope::default().tenant(principal.tenant.as_bytes()).principal(principal.name.as_bytes());
        let scope = resource.map_or(scope, |id| scope.resource(id.as_bytes()));
        StageTwo::from_request_parts(parts, face).await?.admit(&scope)?;
        Ok(Self { principal })
    }
}
