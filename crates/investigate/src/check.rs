//! Bug rules: which ones ([`choose`]), where the program's files are ([`modules`]), the consumer that
//! checks while the program runs ([`watch`]) or is replayed ([`recorded`]), or that screens first
//! ([`screened`]), then follows its beginning (`beginning`) and what led to suspicions ([`windows`]) and
//! says what that leaves out ([`coverage`]), children that go on from their parent's state ([`forks`]), what nobody has written ([`unwritten`]), what was suspected
//! ([`suspicion`]), rules that are switched on and off meanwhile ([`switch`]).

pub mod beginning;
mod blame;
pub mod choose;
pub mod coverage;
mod findings;
mod forks;
pub(crate) mod implementations;
pub mod invalid_calls;
pub mod leaks;
pub mod modules;
pub mod recorded;
mod rooms;
pub mod screened;
pub mod suspicion;
mod switch;
mod unwritten;
pub mod watch;
pub mod windows;

pub use choose::{Choice, Chosen};
pub use findings::RuleFindings;
pub use leaks::Leaks;
pub use watch::Watch;
