//! A NAT-traversal rendezvous: an HTTP API and a UDP mediator behind admission.

fn main() {}
