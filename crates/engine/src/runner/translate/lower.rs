//! Writes the translation of a superblock.
//!
//! ```text
//! prefix   verifies that an indirect branch came to the right translation     (rcx, rdx spilled)
//! body     guest instructions, most of them byte for byte
//! exits    out of line: bookkeeping, then a jump that is linked to the next translation
//!
//! far      elsewhere: stubs of exits that are not linked yet; return addresses too wide for an
//!          immediate
//! ```
//!
//! Rules of the house:
//! * The guest's stack is never touched but by the guest's own pushes; spills go to [`cpu::slot`]s.
//! * Inserted code leaves flags alone unless they are dead (and no signal handler can see them).
//! * The guest's own access in a sequence comes before anything the guest can see has changed.

mod exits;
mod indirect;
mod marks;
mod plain;
mod reserved;
mod returns;
mod shared;

pub(in crate::runner) use exits::Pending;
pub use reserved::common_spills;
pub use shared::Shared;

use super::emit::{Condition, Emit, Hole};
use super::facts::{Flow, Set};
use super::instrument::Instrumentation;
use super::map::{self, Map, Point, Spills};
use super::observe::Observer;
use super::superblock::{Guest, Role, Superblock};
use crate::runner::cpu;
use crate::runner::cpu::reg::{RCX, RDX};
use crate::runner::screens::Stage;
use crate::runner::screens::inline::Tests;
use events::shape::Shape;
use indirect::Target;

/// Slot of rcx and rdx across an indirect branch; the prefix of every translation knows them.
pub const SLOT_RCX: u8 = 0;
/// See [`SLOT_RCX`].
pub const SLOT_RDX: u8 = 1;
/// Slot of a register that stands in for the program counter.
const SLOT_SCRATCH: u8 = 2;

/// Slot of the register that holds the base of the shadow.
const SLOT_SHADOW: u8 = 6;
/// Slot of the scratch register of tests against it.
const SLOT_TEST: u8 = 7;

/// Exit number of an indirect branch whose target has no translation at hand.
pub const EXIT_INDIRECT: u32 = 1;
/// Exit number that the signal handler uses for a fault in translated code.
pub const EXIT_FAULT: u32 = 2;
/// Exit number that the signal handler uses for a test that could not be made.
pub const EXIT_SUSPECT: u32 = 3;
/// First exit number of a translation: the stream has the same numbers.
pub use events::record::FIRST_EXIT;

/// What an exit means to the dispatcher.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitKind {
    /// To a known address; can be linked.
    Direct(u64),
    /// A system call, to be made by the engine; then on to this address.
    Syscall(u64),
    /// The last instruction was an event for the schedule; on to this address.
    Event(u64),
    /// The instruction at this address must be emulated.
    Emulate(u64),
    /// The instruction at this address cannot be run.
    Refuse(u64),
    /// A test has stopped the instruction at this address.
    Suspect(u64, Stage),
    /// The function at this address is called from somewhere that is not known.
    Learn(u64),
    /// By way of the table of indirect branches; never comes to the dispatcher by this number.
    Indirect,
}

/// An exit as the translation has it.
#[derive(Clone, Copy, Debug)]
pub struct Exit {
    /// What it means.
    pub kind: ExitKind,
    /// Address of the 32-bit displacement to patch; zero if it is never linked.
    pub patch: u32,
    /// Where the displacement leads while it is not linked.
    pub stub: u32,
    /// The way to a next translation that needs the same registers put aside.
    pub kept: Option<Kept>,
    /// Instructions of the superblock that have executed when it is taken.
    pub executed: u16,
}

/// A way out that does not give registers back.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// Address of the 32-bit displacement to patch.
    pub patch: u32,
    /// Where the displacement leads while it is not linked.
    pub elsewhere: u32,
    /// The registers, see [`Spills::packed`].
    pub registers: u64,
}

/// The finished translation.
pub struct Translation {
    /// Machine code, prefix first.
    pub code: Vec<u8>,
    /// What is hardly ever executed: stubs of exits, and return addresses.
    pub far: Vec<u8>,
    /// Offset of the body.
    pub body: u32,
    /// Offset of the body for an indirect branch, as [`Shared::common_spills`] tells.
    pub indirect_body: u32,
    /// Offset of the body for those that have put aside the same registers.
    pub inner: u32,
    /// Which registers those are, see [`Spills::packed`].
    pub reserved: u64,
    /// Exits in order of their numbers.
    pub exits: Vec<Exit>,
    /// Return addresses that it has return stubs for.
    pub return_stubs: Vec<u64>,
    /// The way back to guest state.
    pub map: Map,
    /// Facts for the consumer of events, if there are any.
    pub shape: Option<Shape>,
    /// The register that points to the record under construction.
    pub record_register: Option<u8>,
    /// The registers of tests against the shadow: its base, and scratch.
    pub test_registers: Option<(u8, u8)>,
    /// The register through which values are loaded.
    pub value_source: Option<u8>,
}

/// Which of its translations a superblock gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Variant {
    /// The usual one.
    #[default]
    Usual,
    /// Without tests: the dispatcher has looked after its one instruction.
    Untested,
    /// Its one instruction, a conditional branch, goes the other way.
    Flipped,
}

/// A translation that is being written. What screens emit is added by [`crate::runner::screens`].
pub(in crate::runner) struct Lower<'a> {
    pub(in crate::runner) superblock: &'a Superblock,
    pub(in crate::runner) emit: Emit,
    far: Emit,
    shared: Shared,
    pub(in crate::runner) instrumentation: Instrumentation,
    flipped: bool,
    /// Whether the dispatcher has looked after the instruction.
    pub(in crate::runner) untested: bool,
    observer: Option<Observer>,
    pub(in crate::runner) tests: Option<Tests>,
    map: map::Builder,
    first_exit: u32,
    exits: Vec<Exit>,
    pub(in crate::runner) pending: Vec<(Hole, Pending)>,
    return_stubs: Vec<u64>,
    pub(in crate::runner) index: u16,
    /// Whether a record says that the instruction is about to execute: no signal comes before it.
    announced: bool,
    pub(in crate::runner) spills: Spills,
    body: u32,
    indirect_body: u32,
    inner: u32,
}

/// Lowers a superblock to code for two addresses; its exits are numbered from `first_exit`.
pub fn lower(
    superblock: &Superblock,
    (near, far): (u64, u64),
    first_exit: u32,
    shared: Shared,
    instrumentation: Instrumentation,
    variant: Variant,
    exact_flags: bool,
) -> Translation {
    let tested = variant != Variant::Untested;
    let values = instrumentation.records_values() && tested;
    let accesses = instrumentation.records_accesses();
    let records = instrumentation.records();
    let observer = records.then(|| Observer::new(superblock, first_exit, accesses, values));
    let taken = observer.as_ref().map_or(Set::default(), |observer| {
        let taken = Set::default().with(observer.record).with(observer.scratch);
        observer.value.map_or(taken, |value| taken.with(value))
    });
    // Also where nothing is to be tested, so that registers stay put aside on the way through.
    let against = instrumentation.tests.filter(|_| tested);
    let tests = against.map(|against| Tests::new(superblock, taken, exact_flags, against));
    let mut lower = Lower {
        superblock,
        emit: Emit::at(near),
        far: Emit::at(far),
        shared,
        instrumentation,
        flipped: variant == Variant::Flipped,
        untested: !tested,
        observer,
        tests,
        map: map::Builder::default(),
        first_exit,
        exits: Vec::new(),
        pending: Vec::new(),
        return_stubs: Vec::new(),
        index: 0,
        announced: false,
        spills: Spills::default(),
        body: 0,
        indirect_body: 0,
        inner: 0,
    };
    lower.prefix();
    lower.body();
    lower.out_of_line();
    let reserved = lower.reserved().packed();
    let record_register = lower.observer.as_ref().map(|observer| observer.record);
    let value_source = lower.observer.as_ref().and_then(|it| it.value.map(|_| it.scratch));
    let test_registers = lower.tests.as_ref().map(|tests| (tests.base, tests.scratch));
    Translation {
        code: lower.emit.into_bytes(),
        far: lower.far.into_bytes(),
        body: lower.body,
        indirect_body: lower.indirect_body,
        inner: lower.inner,
        reserved,
        exits: lower.exits,
        return_stubs: lower.return_stubs,
        map: lower.map.finish(superblock.pc, superblock.guests.iter().map(Guest::pc)),
        shape: lower.observer.map(|observer| observer.shape),
        record_register,
        test_registers,
        value_source,
    }
}

fn slot(index: u8) -> u64 {
    cpu::slot(index)
}

impl Lower<'_> {
    pub(in crate::runner) fn guest(&self) -> &Guest {
        &self.superblock.guests[self.index as usize]
    }

    pub(in crate::runner) fn note(&mut self, boundary: bool) {
        self.map.add(Point {
            offset: self.emit.offset(),
            index: self.index,
            boundary: boundary && !self.announced,
            repeating: false,
            spills: self.spills,
        });
    }

    /// From here on the instruction may have repeated some of the way.
    fn note_repeating(&mut self) {
        self.map.add(Point {
            offset: self.emit.offset(),
            index: self.index,
            boundary: true,
            repeating: true,
            spills: self.spills,
        });
    }

    pub(in crate::runner) fn spill(&mut self, register: u8, slot_number: u8) {
        self.emit.store_cell(slot(slot_number), register);
        self.spills = self.spills.with(register, slot_number);
        self.note(false);
    }

    pub(in crate::runner) fn unspill(&mut self, register: u8, slot_number: u8) {
        self.emit.load_cell(register, slot(slot_number));
        self.spills = self.spills.without(register);
        self.note(false);
    }

    /// Comes from an indirect branch with the target in rdx, and rcx and rdx in their slots.
    fn prefix(&mut self) {
        self.spills = self.shared.common_spills.with(RCX, SLOT_RCX).with(RDX, SLOT_RDX);
        self.note(false);
        self.verify(self.superblock.pc, self.shared.verify_miss);
    }

    /// Goes on with rcx and rdx restored if the target in rdx is `pc`, else to `elsewhere`.
    fn verify(&mut self, pc: u64, elsewhere: u64) {
        match i32::try_from(pc) {
            Ok(pc) => self.emit.lea(RCX, RDX, -pc),
            Err(_) => {
                self.emit.load_constant(RCX, pc.wrapping_neg());
                self.emit.lea_sum(RCX, RCX, RDX);
            }
        }
        self.emit.jump_if_rcx_zero(5);
        let _ = self.emit.jump(elsewhere);
        self.emit.load_cell(RDX, slot(SLOT_RDX));
        self.emit.load_cell(RCX, slot(SLOT_RCX));
        self.spills = self.shared.common_spills;
    }

    fn body(&mut self) {
        for index in 0..self.superblock.guests.len() {
            self.index = index as u16;
            if index == 0 {
                self.entries();
            } else {
                self.spills = self.reserved();
                self.note(true);
            }
            if index == 0 {
                self.marks();
            }
            self.observe_before();
            self.screen_operands();
            self.one();
            self.screen_results();
            self.observe_after();
            self.announced = false;
        }
        let last = self.superblock.guests.last().expect("a superblock is never empty");
        let falls_through = last.role != Role::Last
            || matches!(last.facts.flow, Flow::Branch(_) | Flow::ShortBranch(_));
        if falls_through {
            let hole = self.emit.jump_hole();
            let next = self.superblock.next;
            let kind =
                if self.superblock.event { ExitKind::Event(next) } else { ExitKind::Direct(next) };
            self.leave(hole, kind, false, false);
        }
    }

    fn one(&mut self) {
        let guest = self.guest();
        match (guest.role, guest.facts.flow) {
            (_, Flow::Trap) => self.trap(),
            (Role::Plain, _) => self.plain(),
            (Role::FollowedJump, _) => {
                let backward = guest.instruction.near_branch_target() <= guest.pc();
                self.inline_tick(backward);
            }
            (Role::FollowedCall, _) => {
                let backward = guest.instruction.near_branch_target() <= guest.pc();
                self.push_return_address();
                self.inline_tick(backward);
            }
            (Role::Call, _) => self.call_past(),
            (Role::CheckedReturn(expected), _) => self.checked_return(expected),
            (_, Flow::Branch(target)) => self.branch(target),
            (_, Flow::ShortBranch(target)) => self.short_branch(target),
            (_, Flow::Jump(target)) => self.jump(target),
            (_, Flow::Call(target)) => {
                self.call();
                self.jump(target);
            }
            (_, Flow::Return) => self.return_(),
            (_, Flow::IndirectJump | Flow::IndirectCall) => self.indirect(Target::Operand),
            (_, Flow::Syscall) => self.stop(ExitKind::Syscall(guest.instruction.next_ip())),
            (_, Flow::Emulate) => self.stop(ExitKind::Emulate(guest.pc())),
            (_, Flow::Refuse | Flow::Next) => self.stop(ExitKind::Refuse(guest.pc())),
        }
    }

    fn branch(&mut self, target: u64) {
        let guest = self.guest();
        let usual = guest.instruction.condition_code() as u8 - 1;
        let condition = Condition(usual ^ u8::from(self.flipped));
        let backward = target <= guest.pc();
        let hole = self.emit.branch_hole(condition);
        self.leave(hole, ExitKind::Direct(target), true, backward);
    }

    /// JRCXZ and LOOP have no long form: they hop to a long jump.
    fn short_branch(&mut self, target: u64) {
        let guest = self.guest();
        let backward = target <= guest.pc();
        let (length, bytes) = (guest.instruction.len(), guest.bytes);
        self.emit.raw(&bytes[..length - 1]);
        self.emit.raw(if self.flipped { &[5] } else { &[2, 0xeb, 5] });
        let hole = self.emit.jump_hole();
        self.leave(hole, ExitKind::Direct(target), true, backward);
    }

    fn jump(&mut self, target: u64) {
        let backward = target <= self.guest().pc();
        let hole = self.emit.jump_hole();
        self.leave(hole, ExitKind::Direct(target), false, backward);
    }

    fn push_return_address(&mut self) {
        let address = self.guest().instruction.next_ip();
        self.push_constant(address);
    }

    fn push_constant(&mut self, address: u64) {
        if i64::from(address as i32) as u64 == address {
            self.emit.push_imm32(address as i32);
        } else {
            // The guest may ask for alignment checks.
            while !self.far.here().is_multiple_of(8) {
                self.far.raw(&[0xcc]);
            }
            let hole = self.emit.push_hole();
            self.emit.fill_to(hole, self.far.here());
            self.far.raw(&address.to_le_bytes());
        }
    }
}
