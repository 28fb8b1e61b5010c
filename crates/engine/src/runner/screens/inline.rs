//! What screens emit into a translation, one place for all kinds: which tests a superblock makes, the
//! registers that they share, and what comes before and behind an instruction. The tests themselves are in
//! the folder of each kind.
//!
//! All of them end alike. A test that finds something leaves the superblock before the instruction
//! ([`ExitKind::Suspect`](crate::runner::translate::lower::ExitKind::Suspect)); the dispatcher looks closely
//! ([`super::look`]), and the instruction runs by itself without a test.

use super::shadow::checks::{self, Check};
use super::{heap, provenance};
use crate::runner::translate::facts::Set;
use crate::runner::translate::instrument;
use crate::runner::translate::lower::Lower;
use crate::runner::translate::observe;
use crate::runner::translate::places::{dead_flags, places};
use crate::runner::translate::superblock::Superblock;
use provenance::addresses::{self, Derived};

/// The tests of a superblock, and the registers they need.
pub struct Tests {
    /// Register that holds the base of the shadow.
    pub base: u8,
    /// Scratch register.
    pub scratch: u8,
    /// What the shadow holds.
    pub against: instrument::Tests,
    checks: Vec<Check>,
    derived: Vec<Derived>,
}

impl Tests {
    /// For a superblock that leaves two registers alone besides those in `taken`. `exact`: also dead
    /// flags must be right when an access faults.
    pub fn new(
        superblock: &Superblock,
        taken: Set,
        exact: bool,
        against: instrument::Tests,
    ) -> Self {
        let mut free = observe::free(superblock, taken);
        let mut next = || free.next().expect("the superblock leaves two registers alone");
        let (base, scratch) = (next(), next());
        let (mut places, sums) = places(superblock, addresses::sum_register);
        let mut derived = Vec::new();
        if let instrument::Tests::Blocks { provenance } = against {
            match superblock.reads_on {
                true => places.iter_mut().for_each(heap::shorten),
                false if provenance => derived = addresses::of(superblock, &places, &sums),
                false => {}
            }
        }
        let mut checks = checks::group(&places, against != instrument::Tests::Painted);
        if let (instrument::Tests::Blocks { .. }, Some(contract)) = (against, superblock.contract) {
            checks.splice(0..0, heap::library_checks(contract));
        }
        let dead =
            if exact { vec![false; superblock.guests.len()] } else { dead_flags(superblock) };
        for check in &mut checks {
            check.keeps_flags = !dead[check.index as usize];
        }
        for derived in &mut derived {
            derived.keeps_flags = !dead[derived.index as usize];
        }
        Self { base, scratch, against, checks, derived }
    }

    /// The tests to make before an instruction.
    pub fn checks_before(&self, index: u16) -> Vec<Check> {
        let from = self.checks.partition_point(|check| check.index < index);
        let to = self.checks.partition_point(|check| check.index <= index);
        self.checks[from..to].to_vec()
    }

    /// The addresses to compare with their pointers before an instruction.
    pub fn derived_before(&self, index: u16) -> Vec<Derived> {
        let from = self.derived.partition_point(|derived| derived.index < index);
        let to = self.derived.partition_point(|derived| derived.index <= index);
        self.derived[from..to].to_vec()
    }
}

impl Lower<'_> {
    /// Before an instruction: its accesses, and the addresses that it makes.
    pub(in crate::runner) fn screen_accesses(&mut self) {
        if self.tests.is_none() {
            return;
        }
        if self.index == 0 && self.superblock.contract.is_some() {
            self.note_library();
        }
        if self.guest().accesses.is_plain_repeat() {
            self.test_repeat();
            return;
        }
        let tested = self.test_accesses();
        let compared = self.compare_tags();
        if tested || compared {
            self.spills = self.reserved();
            self.note(true);
        }
    }

    /// Before an instruction, when it is recorded: what it compares.
    pub(in crate::runner) fn screen_operands(&mut self) {
        self.look_at_compared();
    }

    /// Behind an instruction: the room that it has made.
    pub(in crate::runner) fn screen_results(&mut self) {
        self.poison_frame();
    }
}
