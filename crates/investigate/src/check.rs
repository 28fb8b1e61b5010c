//! Bug rules: which ones ([`choose`]), where the program's files are ([`modules`]), the consumer that
//! checks while the program runs ([`watch`]) or is replayed ([`recorded`]), or that screens first
//! ([`screened`]) and then follows what led to suspicions ([`windows`]), children that go on from their
//! parent's state ([`forks`]), what nobody has written ([`unwritten`]), what was suspected
//! ([`suspicion`]), rules that are switched on and off meanwhile ([`switch`]).

pub mod choose;
mod forks;
pub mod modules;
pub mod quiet;
pub mod recorded;
pub mod screened;
pub mod suspicion;
mod switch;
mod unwritten;
pub mod watch;
pub mod windows;

pub use choose::{Choice, Chosen};
pub use watch::{Found, Watch};
