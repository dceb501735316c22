//! A NAT-traversal rendezvous behind admission: two players find each other's address and play directly.
//!
//! A host lists its game over HTTP; a joiner starts an attempt at it. Each then holds a [`capability`] for its
//! role in that attempt, and sends one signed datagram ([`wire`]) from the socket that it will play on. Once
//! both have bound to the sources that they were seen at, the [`mediator`] introduces them: one datagram to
//! each, once. HTTP never says where an introduction goes.
//!
//! What decides is pure: it is handed the time and random bytes. Sockets and clocks are in the edges.

pub mod capability;
pub mod credentials;
pub mod edge;
pub mod endpoint;
pub mod hex;
#[cfg(feature = "edges")]
pub mod http;
pub mod keys;
pub mod mediator;
#[cfg(feature = "edges")]
pub mod peer;
pub mod registry;
#[cfg(feature = "edges")]
pub mod run;
pub mod service;
#[cfg(feature = "edges")]
pub mod udp;
pub mod wire;
