//! `singlestep`: to come.
fn main() {}
