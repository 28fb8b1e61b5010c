//! What is emitted for the **address shadow**: every access is tested before it is made.
//!
//! A byte of the shadow stands for eight of the guest's: that of an address is at
//! `(address >> 3) + BASE`. `BASE` has the bits of 3 at its low end, so the one register that holds
//! it is also the shift count. Where flags are dead the test of `[r + 24]` is
//!
//! ```text
//! shrx T, r, BASE; cmp word [T + BASE + 3], 0; jne suspect
//! ```
//!
//! Elsewhere nothing may touch them, and a branch would need rcx. There the shadow becomes part of an
//! address that exists only if all of it is zero ([`LAST_WORD`], behind which nothing is):
//!
//! ```text
//! shrx T, r, BASE; movzx T, word [T + BASE + 3]; mov T, [T * 8 + LAST_WORD]
//! ```
//!
//! For that every byte of the shadow that is not zero has its highest bit set. Flags that are dead
//! can still be seen by a handler of the guest's if the access faults; a guest that has one gets the
//! second form everywhere ([`Tests::new`](crate::runner::screens::inline::Tests::new), `exact`).
//!
//! Accesses whose addresses differ by constants share a test, as far as eight bytes of shadow
//! reach, and their displacements are part of the shadow's address. Which bytes an access touches
//! exactly is known only to the dispatcher: the test in translated code may cover one granule
//! beyond the access, never miss one (unless it is [tight](crate::runner::screens::heap)). Where it finds anything the
//! superblock is left, the dispatcher looks closely, and the instruction runs without a test.

use super::checks::{Check, is_split};
use crate::layout;
#[cfg(doc)]
use crate::layout::LAST_WORD;
use crate::runner::cpu::{self, Cpu};
use crate::runner::screens::{Stage, heap};
use crate::runner::translate::accesses::Form;
use crate::runner::translate::emit::Condition;
use crate::runner::translate::instrument;
use crate::runner::translate::lower::{Lower, Pending};
use events::plan::GRANULE;
use events::shape::Segment;
use std::mem::offset_of;

/// The shadow has one byte for so many address bits less.
const SHADOW_SHIFT: u32 = GRANULE.trailing_zeros();

/// Where the shadow of tested bytes is.
#[derive(Clone, Copy)]
enum Shadowed {
    /// So far from the table's base.
    At(i32),
    /// So far from the sum of that and the scratch register.
    Beside(i32),
}

impl Lower<'_> {
    /// Tests the accesses of the instruction. Whether there are any.
    pub(in crate::runner) fn test_accesses(&mut self) -> bool {
        let Some(tests) = &self.tests else { return false };
        let (base, scratch, checks) = (tests.base, tests.scratch, tests.checks_before(self.index));
        for check in &checks {
            let place = self.shadow_of(check, base, scratch);
            if check.keeps_flags {
                self.load_shadow(place, base, scratch, check.width);
                continue;
            }
            match place {
                Shadowed::At(at) => self.emit.compare_at(base, at, check.width),
                Shadowed::Beside(at) => self.emit.compare_sum(scratch, base, at, check.width),
            }
            let hole = self.emit.branch_hole(Condition::NOT_EQUAL);
            let (index, fields) = (self.index, self.fields());
            self.pending.push((hole, Pending::Suspect { index, fields, stage: Stage::Accesses }));
        }
        !checks.is_empty()
    }

    /// Faults if the shadow is not all zero, and leaves flags alone.
    fn load_shadow(&mut self, place: Shadowed, base: u8, scratch: u8, width: u8) {
        match place {
            Shadowed::At(at) => self.emit.load_bytes(scratch, base, at, width),
            Shadowed::Beside(at) => self.emit.load_sum(scratch, scratch, base, at, width),
        }
        if width > 2 {
            let bits = cpu::field(offset_of!(Cpu, shadow_bits));
            self.emit.select_bits(scratch, scratch, bits);
        }
        self.emit.load_word(scratch, scratch, layout::LAST_WORD);
    }

    /// Finds the shadow of tested bytes.
    fn shadow_of(&mut self, check: &Check, base: u8, scratch: u8) -> Shadowed {
        let shift = SHADOW_SHIFT;
        let blocks = self.tests.as_ref().is_some_and(|it| it.against != instrument::Tests::Painted);
        let exact = |displacement: i64| !blocks || heap::is_whole(displacement);
        let mut source = scratch;
        let mut beside = 0;
        match check.form {
            Form::Constant(address) if check.segment == Segment::Flat => {
                if let Ok(at) = i32::try_from(address >> shift) {
                    return Shadowed::At(at);
                }
                self.emit.load_constant(scratch, address >> shift);
                return Shadowed::Beside(0);
            }
            Form::Constant(address) => self.emit.load_constant(scratch, address),
            Form::Base(register, displacement)
                if check.segment == Segment::Flat
                    && is_split(displacement)
                    && exact(displacement) =>
            {
                (source, beside) = (register, (displacement >> shift) as i32);
            }
            Form::Base(register, displacement) => {
                self.emit.lea(scratch, register, displacement as i32);
            }
            Form::Sum(register, index, scale, displacement) => {
                self.emit.lea_scaled(scratch, register, index, scale, displacement);
            }
        }
        if check.segment != Segment::Flat {
            self.emit.segment_base(base, check.segment == Segment::Gs);
            self.emit.lea_sum(scratch, scratch, base);
            self.emit.load_cell(base, cpu::field(offset_of!(Cpu, shadow)));
        }
        self.emit.shift_right(scratch, source, base);
        Shadowed::Beside(beside)
    }
}
