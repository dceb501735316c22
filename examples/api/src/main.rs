//! An API with route limits and a login on the guard store.

fn main() {}
