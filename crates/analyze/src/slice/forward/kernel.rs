//! What a system call makes of marks: its answer, and what it writes to memory.
//!
//! The stream tells what a call took when it has returned, behind its instruction. So whether the
//! instruction takes part may come out late, when others have executed meanwhile.

use super::marks::NO_NODE;
use super::{Forward, Ran};
use crate::dependence::system_calls::{Takes, takes};
use crate::semantics::Parts;
use crate::slice::at::At;
use crate::slice::graph::{Edge, Kind, What};
use crate::slice::question::Follow;
use crate::slice::wanters::{Reason, Reasons};

/// System calls that write more than this map memory.
const LARGEST_RESULT: u64 = 1 << 16;

/// A system call under way.
pub struct Call {
    ran: Ran,
    /// The node of its instruction, if a decision made it take part.
    node: Option<u32>,
    /// Marked memory that it read.
    read: Reasons,
    /// Whether what it writes to memory carries the value.
    writes: bool,
}

impl Forward<'_> {
    /// An instruction makes a system call; `led` if that was decided by something that takes part.
    pub(super) fn calls(&mut self, at: &At<'_>, led: Option<u32>) -> Call {
        Call { ran: self.ran(at), node: led, read: Reasons::new(), writes: led.is_some() }
    }

    /// The kernel read memory in the call that returns next.
    pub(super) fn kernel_read(&mut self, ranges: impl Iterator<Item = (u64, u64)>) {
        let Some(mut call) = self.current.call.take() else { return };
        for (address, bytes) in ranges {
            for from in (0..bytes).step_by(64) {
                let at = address.wrapping_add(from);
                let mask = self.memory.mask(at, (bytes - from).min(64));
                self.memory.tell(at, mask, &mut call.read);
            }
        }
        self.current.call = Some(call);
    }

    /// A system call has returned.
    pub(super) fn answered(&mut self, what: What) {
        let rax = Parts::general(0, 0, 8);
        let What::Syscall { number, answer, .. } = what else { return };
        let Some(mut call) = self.current.call.take() else {
            return self.current.marked.clear(rax);
        };
        let Takes { values, places } = takes(number, answer);
        let follows_addresses = self.question.follow != Follow::Thin;
        let marked = &self.current.marked;
        let mut found = std::mem::take(&mut call.read);
        let contents = found.iter().next().is_some();
        let numbers = marked.meets(&values);
        marked.tell(values, Kind::Value, &mut found);
        let addresses = follows_addresses && marked.meets(&places);
        if follows_addresses {
            marked.tell(places, Kind::Address, &mut found);
        }
        let decided = call.node.is_some();
        call.writes |= contents || addresses || follows_addresses && numbers;
        let answers = decided || contents || addresses || numbers;
        if found.iter().next().is_some() {
            call.node = self.take_call(&call, &found);
        }
        self.current.marked.clear(rax);
        if let Some(node) = call.node {
            if answers {
                self.current.marked.set(self.unpruned(rax), node);
            }
            if let Some(node) = self.slice.nodes.get_mut(node as usize) {
                node.what = what;
            }
        }
        self.current.call = Some(call);
    }

    /// A system call wrote memory. Large ranges are mappings, whose contents nobody made.
    pub(super) fn wrote(&mut self, ranges: impl Iterator<Item = (u64, u64)>) {
        let carried = self.current.call.as_ref().filter(|call| call.writes);
        let node = carried.and_then(|call| call.node);
        for (address, bytes) in ranges {
            self.memory.clear(address, bytes);
            if let Some(node) = node.filter(|_| bytes < LARGEST_RESULT) {
                self.mark_range(address, bytes, node);
            }
        }
    }

    /// Takes the instruction of a call into the slice because of what the call took; its node if what it
    /// makes is followed.
    fn take_call(&mut self, call: &Call, found: &Reasons) -> Option<u32> {
        let Some(user) = call.node.filter(|node| *node != NO_NODE) else {
            // It may have been taken in already, further away than its dependences are followed.
            let known = self.members.has(call.ran.moment);
            return if known { call.node } else { self.include(&call.ran, found) };
        };
        let kept = |reason: &&Reason| reason.0 != NO_NODE;
        for (on, kind, because) in found.iter().filter(kept) {
            let depth = self.slice.nodes[*on as usize].depth + 1;
            let node = &mut self.slice.nodes[user as usize];
            node.depth = node.depth.min(depth);
            self.slice.edges.push(Edge { user, on: *on, kind: *kind, because: *because });
        }
        Some(user)
    }
}
