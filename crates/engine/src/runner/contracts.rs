//! What functions of the C library are about to touch, worked out where they are entered: how long a text is
//! only memory tells, and it must be asked before the function writes.

use super::engine::Engine;
use super::guest;
use super::memory::Mapping;
use super::stops::arguments;
use ::contracts::{Contract, Memory};
use events::record::{Entry, Touch};
use std::ops::Range;

/// The guest's memory, without asking the kernel where that is certain to go well.
pub struct Guest<'a>(pub &'a Engine);

impl Memory for Guest<'_> {
    fn read(&self, address: u64, out: &mut [u8]) -> usize {
        let plain = |(range, mapping): (Range<u64>, &Mapping)| {
            let readable = mapping.protection & libc::PROT_READ != 0;
            let room = usize::try_from(range.end - address).unwrap_or(usize::MAX);
            (readable && mapping.file.is_none() && !mapping.shared && room >= out.len())
                .then_some(())
        };
        if self.0.process.memory.find(address).and_then(plain).is_none() {
            return guest::read_some(address, out);
        }
        // SAFETY: private memory of the guest's, without a file that could be too short, that can be read;
        // whoever could change that waits for the baton. What it is copied to is our own.
        unsafe {
            std::ptr::copy_nonoverlapping(address as *const u8, out.as_mut_ptr(), out.len());
        }
        out.len()
    }
}

impl Engine {
    /// A function with a contract has been entered: tells what it will touch.
    pub fn record_touches(&mut self, function: u64, contract: &Contract) {
        let mut touched = Vec::new();
        contract.touched(arguments(&self.cpu), &Guest(self), &mut touched);
        for touched in touched {
            self.record(&Entry::Touch(Touch { function, touched }));
        }
    }
}
