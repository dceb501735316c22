//! A login and a password reset, limited on whichever store is configured.

fn main() {}
