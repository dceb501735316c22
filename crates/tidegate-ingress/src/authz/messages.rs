//! The messages of `envoy.service.auth.v3`, as far as they are used here.
//!
//! Written by hand rather than made from the proto files: of those, some thirty with what they include, a
//! dozen fields are needed. What is left out is skipped when it is read.

use std::collections::HashMap;

/// `envoy.service.auth.v3.CheckRequest`
#[derive(Clone, PartialEq, prost::Message)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct CheckRequest {
    #[prost(message, optional, tag = "1")]
    pub attributes: Option<Attributes>,
}

/// `envoy.service.auth.v3.AttributeContext`
#[derive(Clone, PartialEq, prost::Message)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Attributes {
    #[prost(message, optional, tag = "1")]
    pub source: Option<Peer>,
    #[prost(message, optional, tag = "4")]
    pub request: Option<AttributesRequest>,
    #[prost(map = "string, string", tag = "10")]
    pub context_extensions: HashMap<String, String>,
}

/// `envoy.service.auth.v3.AttributeContext.Peer`
#[derive(Clone, PartialEq, prost::Message)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Peer {
    #[prost(message, optional, tag = "1")]
    pub address: Option<Address>,
}

/// `envoy.config.core.v3.Address`
#[derive(Clone, PartialEq, prost::Message)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Address {
    #[prost(message, optional, tag = "1")]
    pub socket_address: Option<SocketAddress>,
}

/// `envoy.config.core.v3.SocketAddress`
#[derive(Clone, PartialEq, prost::Message)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct SocketAddress {
    #[prost(string, tag = "2")]
    pub address: String,
}

/// `envoy.service.auth.v3.AttributeContext.Request`
#[derive(Clone, PartialEq, prost::Message)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct AttributesRequest {
    #[prost(message, optional, tag = "2")]
    pub http: Option<HttpRequest>,
}

/// `envoy.service.auth.v3.AttributeContext.HttpRequest`
#[derive(Clone, PartialEq, prost::Message)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct HttpRequest {
    #[prost(string, tag = "2")]
    pub method: String,
    #[prost(map = "string, string", tag = "3")]
    pub headers: HashMap<String, String>,
    #[prost(string, tag = "4")]
    pub path: String,
    #[prost(string, tag = "5")]
    pub host: String,
    #[prost(message, optional, tag = "13")]
    pub header_map: Option<HeaderMap>,
}

/// `envoy.config.core.v3.HeaderMap`
#[derive(Clone, PartialEq, prost::Message)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct HeaderMap {
    #[prost(message, repeated, tag = "1")]
    pub headers: Vec<HeaderValue>,
}

/// `envoy.config.core.v3.HeaderValue`
#[derive(Clone, PartialEq, prost::Message)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct HeaderValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(string, tag = "2")]
    pub value: String,
    #[prost(bytes = "vec", tag = "3")]
    pub raw_value: Vec<u8>,
}

/// `envoy.service.auth.v3.CheckResponse`
#[derive(Clone, PartialEq, prost::Message)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct CheckResponse {
    #[prost(message, optional, tag = "1")]
    pub status: Option<RpcStatus>,
    #[prost(message, optional, tag = "2")]
    pub denied_response: Option<DeniedHttpResponse>,
}

/// `google.rpc.Status`
#[derive(Clone, PartialEq, prost::Message)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
}

/// `envoy.service.auth.v3.DeniedHttpResponse`
#[derive(Clone, PartialEq, prost::Message)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct DeniedHttpResponse {
    #[prost(message, optional, tag = "1")]
    pub status: Option<HttpStatus>,
    #[prost(message, repeated, tag = "2")]
    pub headers: Vec<HeaderValueOption>,
    #[prost(string, tag = "3")]
    pub body: String,
}

/// `envoy.type.v3.HttpStatus`
#[derive(Clone, PartialEq, prost::Message)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct HttpStatus {
    #[prost(int32, tag = "1")]
    pub code: i32,
}

/// `envoy.config.core.v3.HeaderValueOption`
#[derive(Clone, PartialEq, prost::Message)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct HeaderValueOption {
    #[prost(message, optional, tag = "1")]
    pub header: Option<HeaderValue>,
}
