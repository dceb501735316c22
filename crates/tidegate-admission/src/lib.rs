//! Bounded, staged admission for services that take public HTTP and UDP.
