//! postgres.
