//! Who wants what: beside the exact set of wanted things, for the nodes near the question, the
//! nodes that want each of them.

use super::graph::{Because, Kind};
use crate::semantics::Parts;
use rustc_hash::FxHashMap;

type List = Vec<(u32, Kind)>;

/// Nodes by what they want.
#[derive(Default)]
pub struct Wanters {
    parts: FxHashMap<(u32, u8), List>,
    bytes: FxHashMap<u64, List>,
}

/// Nodes that wanted something that is now defined.
pub type Found = Vec<(u32, Kind, Because)>;

fn note(list: &mut List, node: u32, kind: Kind) {
    if !list.contains(&(node, kind)) {
        list.push((node, kind));
    }
}

impl Wanters {
    /// A node wants register parts of a thread.
    pub fn want_parts(&mut self, thread: u32, parts: Parts, node: u32, kind: Kind) {
        for part in parts.iter() {
            note(self.parts.entry((thread, part)).or_default(), node, kind);
        }
    }

    /// A node wants those of some bytes whose bit is set.
    pub fn want_bytes(&mut self, address: u64, which: u64, node: u32, kind: Kind) {
        for byte in (0..64).filter(|byte| which >> byte & 1 == 1) {
            note(self.bytes.entry(address.wrapping_add(byte)).or_default(), node, kind);
        }
    }

    /// Register parts are defined: who wanted them?
    pub fn take_parts(&mut self, thread: u32, parts: Parts, found: &mut Found) {
        for part in parts.iter() {
            for (node, kind) in self.parts.remove(&(thread, part)).unwrap_or_default() {
                add(found, node, kind, Because::Parts(Parts::numbered(part)));
            }
        }
    }

    /// Bytes are defined: who wanted them?
    pub fn take_bytes(&mut self, address: u64, which: u64, found: &mut Found) {
        for byte in (0..64).filter(|byte| which >> byte & 1 == 1) {
            let address = address.wrapping_add(byte);
            for (node, kind) in self.bytes.remove(&address).unwrap_or_default() {
                add(found, node, kind, Because::Memory { address, bytes: 1 });
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Adds a reason, joining it with the last one of the same node where they touch.
pub fn add(found: &mut Found, node: u32, kind: Kind, because: Because) {
    let same = found.iter_mut().find(|(other, of, known)| {
        (*other, *of) == (node, kind)
            && match (*known, because) {
                (Because::Parts(_), Because::Parts(_)) => true,
                (Because::Memory { address, bytes }, Because::Memory { address: next, .. }) => {
                    address + u64::from(bytes) == next
                }
                _ => false,
            }
    });
    match (same, because) {
        (Some((.., Because::Parts(known))), Because::Parts(more)) => *known |= more,
        (Some((.., Because::Memory { bytes, .. })), _) => *bytes += 1,
        _ => found.push((node, kind, because)),
    }
}
