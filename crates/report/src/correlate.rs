//! What `whydunit correlate` says: rules and findings of a source tree ([`text`]), one rule in full
//! ([`explanation`]), figures about all of them ([`tables`]).

pub mod explanation;
pub mod tables;
pub mod text;
