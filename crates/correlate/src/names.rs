//! Interned names. Every identifier of the tree is stored once and then compared as a number.
//!
//! Both passes run in parallel over the files, so the table can be filled from any thread. The
//! numbers differ from run to run; nothing that leaves the crate may depend on their order.

use lasso::{Spur, ThreadedRodeo};
use std::hash::BuildHasherDefault;

/// An interned identifier.
pub type Name = Spur;

/// The table of all identifiers.
pub struct Names(ThreadedRodeo<Spur, BuildHasherDefault<rustc_hash::FxHasher>>);

impl Default for Names {
    fn default() -> Self {
        Self(ThreadedRodeo::with_hasher(BuildHasherDefault::default()))
    }
}

impl Names {
    /// The number of `text`, now or from before.
    pub fn intern(&self, text: &str) -> Name {
        self.0.get_or_intern(text)
    }

    /// The number of `text` if it was ever interned.
    pub fn find(&self, text: &str) -> Option<Name> {
        self.0.get(text)
    }

    /// The text behind a number.
    pub fn text(&self, name: Name) -> &str {
        self.0.resolve(&name)
    }
}
