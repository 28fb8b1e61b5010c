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

mod returns;

use super::accesses::Form;
use super::emit::{Condition, Emit, Hole};
use super::facts::{ARITHMETIC_FLAGS, Flow, Set, number};
use super::filter::{Check, Screen};
use super::map::{self, Map, Point, Spills};
use super::observe::{self, Observer};
use super::superblock::{Guest, Role, Superblock};
use crate::runner::cpu::reg::{RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP};
use crate::runner::cpu::{self, Cpu};
use crate::runner::layout;
use events::Plan;
use events::shape::{self, Segment, Shape};
use iced_x86::{Code, Register};
use std::mem::offset_of;

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
/// First exit number of a translation.
pub const FIRST_EXIT: u32 = 16;

/// Code that all translations share.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// The table had no entry, or the ticks have run out: the target is in rdx.
    pub table_miss: u64,
    /// The table's entry was another pc's: the target is in rdx. Looks in the second table.
    pub verify_miss: u64,
    /// The table of returns had no entry: as an indirect branch to the target in rdx.
    pub return_miss: u64,
    /// Its entry was another pc's, which has repaired the stack.
    pub return_elsewhere: u64,
}

/// What an exit means to the dispatcher.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitKind {
    /// To a known address; can be linked.
    Direct(u64),
    /// A system call, to be made by the engine; then on to this address.
    Syscall(u64),
    /// The instruction at this address must be emulated.
    Emulate(u64),
    /// The instruction at this address cannot be run.
    Refuse(u64),
    /// The instruction at this address may not pass the filter.
    Suspect(u64),
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
    /// Instructions of the superblock that have executed when it is taken.
    pub executed: u16,
}

/// The finished translation.
pub struct Translation {
    /// Machine code, prefix first.
    pub code: Vec<u8>,
    /// What is hardly ever executed: stubs of exits, and return addresses.
    pub far: Vec<u8>,
    /// Offset of the body.
    pub body: u32,
    /// Exits in order of their numbers.
    pub exits: Vec<Exit>,
    /// Return addresses that it has pads for.
    pub pads: Vec<u64>,
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

/// Code that stands out of line, behind the body.
#[derive(Clone, Copy)]
enum Pending {
    /// Bookkeeping and link jump of an exit.
    Exit(Leaving),
    /// A call, when the processor has noted its pad.
    Call { index: u16, pad: u64 },
    /// The link jump behind a pad.
    Pad { back: u64, executed: u16 },
    /// A checked return that goes somewhere else.
    ReturnElsewhere { index: u16, fields: u16 },
    /// A test against the shadow that found something.
    Suspect { index: u16, fields: u16 },
}

/// An exit that has not been written yet.
#[derive(Clone, Copy)]
struct Leaving {
    kind: ExitKind,
    executed: u16,
    tick: bool,
    fields: u16,
    taken: bool,
}

struct Lower<'a> {
    superblock: &'a Superblock,
    emit: Emit,
    far: Emit,
    shared: Shared,
    plan: &'a Plan,
    flipped: bool,
    observer: Option<Observer>,
    screen: Option<Screen>,
    map: map::Builder,
    first_exit: u32,
    exits: Vec<Exit>,
    pending: Vec<(Hole, Pending)>,
    pads: Vec<u64>,
    index: u16,
    spills: Spills,
}

/// Lowers a superblock to code for two addresses; its exits are numbered from `first_exit`.
pub fn lower(
    superblock: &Superblock,
    (near, far): (u64, u64),
    first_exit: u32,
    shared: Shared,
    plan: &Plan,
    variant: Variant,
    exact_flags: bool,
) -> Translation {
    let values = plan.values && variant != Variant::Untested;
    let accesses = plan.observes_accesses();
    let observer = plan.weaves().then(|| Observer::new(superblock, first_exit, accesses, values));
    let taken = observer.as_ref().map_or(Set::default(), |observer| {
        let taken = Set::default().with(observer.record).with(observer.scratch);
        observer.value.map_or(taken, |value| taken.with(value))
    });
    let tested = plan.filter.is_some() && variant != Variant::Untested;
    let screen = tested
        .then(|| Screen::new(superblock, taken, exact_flags, !plan.heap.is_empty()))
        .filter(|screen| !screen.is_empty());
    let mut lower = Lower {
        superblock,
        emit: Emit::at(near),
        far: Emit::at(far),
        shared,
        plan,
        flipped: variant == Variant::Flipped,
        observer,
        screen,
        map: map::Builder::default(),
        first_exit,
        exits: Vec::new(),
        pending: Vec::new(),
        pads: Vec::new(),
        index: 0,
        spills: Spills::default(),
    };
    lower.prefix();
    let body = lower.emit.offset();
    lower.body();
    lower.out_of_line();
    let record_register = lower.observer.as_ref().map(|observer| observer.record);
    let value_source = lower.observer.as_ref().and_then(|it| it.value.map(|_| it.scratch));
    let test_registers = lower.screen.as_ref().map(|screen| (screen.base, screen.scratch));
    Translation {
        code: lower.emit.into_bytes(),
        far: lower.far.into_bytes(),
        body,
        exits: lower.exits,
        pads: lower.pads,
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
    fn guest(&self) -> &Guest {
        &self.superblock.guests[self.index as usize]
    }

    fn note(&mut self, boundary: bool) {
        self.map.add(Point {
            offset: self.emit.offset(),
            index: self.index,
            boundary,
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

    fn spill(&mut self, register: u8, slot_number: u8) {
        self.emit.store_cell(slot(slot_number), register);
        self.spills = self.spills.with(register, slot_number);
        self.note(false);
    }

    fn unspill(&mut self, register: u8, slot_number: u8) {
        self.emit.load_cell(register, slot(slot_number));
        self.spills = self.spills.without(register);
        self.note(false);
    }

    /// Comes from an indirect branch with the target in rdx, and rcx and rdx in their slots.
    fn prefix(&mut self) {
        self.spills = Spills::default().with(RCX, SLOT_RCX).with(RDX, SLOT_RDX);
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
        self.spills = Spills::default();
    }

    fn body(&mut self) {
        for index in 0..self.superblock.guests.len() {
            self.index = index as u16;
            self.spills = if index == 0 { Spills::default() } else { self.reserved() };
            self.note(true);
            if index == 0 {
                self.head();
            }
            self.observe_before();
            self.one();
            self.observe_after();
        }
        let last = self.superblock.guests.last().expect("a superblock is never empty");
        let falls_through = last.role != Role::Last
            || matches!(last.facts.flow, Flow::Branch(_) | Flow::ShortBranch(_));
        if falls_through {
            let hole = self.emit.jump_hole();
            self.leave(hole, ExitKind::Direct(self.superblock.next), false, false);
        }
    }

    /// Spills that hold from head to exit.
    fn reserved(&self) -> Spills {
        let mut spills = Spills::default();
        if let Some(observer) = &self.observer {
            spills = spills
                .with(observer.record, observe::SLOT_RECORD)
                .with(observer.scratch, observe::SLOT_SCRATCH);
            if let Some(value) = observer.value {
                spills = spills.with(value, observe::SLOT_VALUE);
            }
        }
        if let Some(screen) = &self.screen {
            spills = spills.with(screen.base, SLOT_SHADOW).with(screen.scratch, SLOT_TEST);
        }
        spills
    }

    /// Whether registers are put aside for observation.
    fn reserves(&self) -> bool {
        self.observer.is_some() || self.screen.is_some()
    }

    /// Puts registers aside for observation.
    fn head(&mut self) {
        if let Some(observer) = &self.observer {
            let (record, scratch, value) = (observer.record, observer.scratch, observer.value);
            self.spill(record, observe::SLOT_RECORD);
            self.spill(scratch, observe::SLOT_SCRATCH);
            if let Some(value) = value {
                self.spill(value, observe::SLOT_VALUE);
            }
            self.emit.load_cell(record, cpu::field(offset_of!(Cpu, events)));
        }
        if let Some(screen) = &self.screen {
            let (base, scratch) = (screen.base, screen.scratch);
            self.spill(base, SLOT_SHADOW);
            self.spill(scratch, SLOT_TEST);
            self.emit.load_cell(base, cpu::field(offset_of!(Cpu, shadow)));
        }
    }

    fn observe_before(&mut self) {
        if let Some(observer) = &mut self.observer {
            let guest = &self.superblock.guests[self.index as usize];
            observer.before(&mut self.emit, guest, self.index);
            let repeats = observer.repeats();
            // Nothing that the guest can see has changed: a boundary again. PUSHF above all must
            // not be reached by single steps, or it would show the trap flag.
            self.spills = self.reserved();
            self.note(true);
            if repeats {
                self.note_repeating();
            }
        }
        self.test_before();
    }

    /// Tests accesses against the shadow.
    fn test_before(&mut self) {
        let Some(screen) = &self.screen else { return };
        let (base, scratch) = (screen.base, screen.scratch);
        let checks = screen.before(self.index);
        for check in &checks {
            self.shadow_address(check, base, scratch);
            if !check.keeps_flags {
                self.emit.compare_sum(scratch, base, check.width);
                let hole = self.emit.branch_hole(Condition::NOT_EQUAL);
                let (index, fields) = (self.index, self.fields());
                self.pending.push((hole, Pending::Suspect { index, fields }));
                continue;
            }
            self.emit.load_sum(scratch, scratch, base, check.width);
            if check.width > 2 {
                self.emit.select_bits(scratch, scratch, cpu::field(offset_of!(Cpu, shadow_bits)));
            }
            self.emit.rotate_right(scratch, if check.width == 2 { 16 } else { 8 });
            let exists = cpu::field(offset_of!(Cpu, shadow));
            self.emit.load_byte(scratch, scratch, exists as i32);
        }
        if !checks.is_empty() {
            self.spills = self.reserved();
            self.note(true);
        }
    }

    /// Where the shadow of tested bytes is, less its base, to the scratch register.
    fn shadow_address(&mut self, check: &Check, base: u8, scratch: u8) {
        match check.form {
            Form::Constant(address) if check.segment == Segment::Flat => {
                self.emit.load_constant(scratch, address >> SHADOW_SHIFT);
                return;
            }
            Form::Constant(address) => self.emit.load_constant(scratch, address),
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
        self.emit.shift_right(scratch, base);
    }

    fn observe_after(&mut self) {
        if let Some(observer) = &mut self.observer {
            let guest = &self.superblock.guests[self.index as usize];
            observer.after(&mut self.emit, guest);
        }
    }

    fn fields(&self) -> u16 {
        self.observer.as_ref().map_or(0, Observer::fields)
    }

    /// Completes the record with the number of an exit and gives registers back.
    fn foot(&mut self, exit: u32, fields: u16) {
        if let Some(observer) = &self.observer {
            let (record, scratch, value) = (observer.record, observer.scratch, observer.value);
            self.emit.store_imm32(record, 0, exit);
            self.emit.lea(record, record, Observer::record_bytes(fields));
            self.emit.store_cell(cpu::field(offset_of!(Cpu, events)), record);
            self.unspill(record, observe::SLOT_RECORD);
            self.unspill(scratch, observe::SLOT_SCRATCH);
            if let Some(value) = value {
                self.unspill(value, observe::SLOT_VALUE);
            }
        }
        if let Some(screen) = &self.screen {
            let (base, scratch) = (screen.base, screen.scratch);
            self.unspill(base, SLOT_SHADOW);
            self.unspill(scratch, SLOT_TEST);
        }
    }

    /// Numbers an exit, and tells the consumer of it.
    fn number_exit(&mut self, executed: u16, fields: u16, taken: bool) -> u32 {
        if let Some(observer) = &mut self.observer {
            observer.shape.exits.push(shape::Exit { executed, fields, taken });
        }
        self.first_exit + self.exits.len() as u32
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

    fn leave(&mut self, hole: Hole, kind: ExitKind, taken: bool, tick: bool) {
        let executed = match kind {
            ExitKind::Refuse(_) => self.index,
            _ => self.index + 1,
        };
        let fields = self.fields();
        self.pending.push((hole, Pending::Exit(Leaving { kind, executed, tick, fields, taken })));
    }

    fn stop(&mut self, kind: ExitKind) {
        let hole = self.emit.jump_hole();
        self.leave(hole, kind, false, false);
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

    /// A tick in the middle of a superblock, where control goes on to the next instruction.
    fn inline_tick(&mut self, backward: bool) {
        if !(self.plan.ticks && backward) {
            return;
        }
        let target = self.superblock.guests.get(self.index as usize + 1);
        let flags_dead = target.is_some_and(|guest| guest.live_flags & ARITHMETIC_FLAGS == 0);
        let pc = target.map_or(self.superblock.next, Guest::pc);
        self.count_tick(flags_dead, ExitKind::Direct(pc));
    }

    /// Takes one from the ticks, and leaves when none are left. The branch has happened.
    fn count_tick(&mut self, flags_dead: bool, when_out: ExitKind) {
        let ticks = cpu::field(offset_of!(Cpu, ticks));
        if flags_dead {
            self.emit.decrement_cell(ticks);
            let hole = self.emit.branch_hole(Condition::EQUAL);
            self.leave(hole, when_out, false, false);
            return;
        }
        self.spill(RCX, SLOT_RCX);
        self.emit.load_cell(RCX, ticks);
        self.emit.lea(RCX, RCX, -1);
        self.emit.store_cell(ticks, RCX);
        // jrcxz out; restore; jmp on; out: restore; jmp stub
        self.emit.jump_if_rcx_zero(9);
        self.emit.load_cell(RCX, slot(SLOT_RCX));
        self.emit.raw(&[0xeb, 12]);
        self.emit.load_cell(RCX, slot(SLOT_RCX));
        let hole = self.emit.jump_hole();
        self.spills = self.spills.without(RCX);
        self.leave(hole, when_out, false, false);
    }

    fn out_of_line(&mut self) {
        let mut next = 0;
        while let Some((hole, pending)) = self.pending.get(next).copied() {
            next += 1;
            match pending {
                Pending::Exit(exit) => self.exit(hole, exit),
                Pending::Call { index, pad } => {
                    self.emit.fill(hole);
                    self.rest_of_call(index, pad);
                }
                Pending::Pad { back, executed } => {
                    let number = self.number_exit(executed, 0, false);
                    self.link(hole, number, ExitKind::Direct(back), executed);
                }
                Pending::ReturnElsewhere { index, fields } => {
                    self.emit.fill(hole);
                    self.index = index;
                    self.spills = self.reserved().with(RCX, SLOT_RCX).with(RDX, SLOT_RDX);
                    self.note(false);
                    self.emit.load(RDX, RSP, 0);
                    self.look_up();
                    self.emit.lea(RSP, RSP, 8);
                    self.go(fields);
                }
                Pending::Suspect { index, fields } => {
                    self.emit.fill(hole);
                    self.suspect(index, fields);
                }
            }
        }
    }

    /// The instruction has not begun; nobody needs the flags.
    fn suspect(&mut self, index: u16, fields: u16) {
        self.index = index;
        self.spills = self.reserved();
        self.note(false);
        let number = self.number_exit(index, fields, false);
        self.foot(number, fields);
        let jump = self.emit.jump_hole();
        let stub = self.stub(number);
        self.emit.fill_to(jump, u64::from(stub));
        let kind = ExitKind::Suspect(self.guest().pc());
        self.exits.push(Exit { kind, patch: 0, stub, executed: index });
    }

    /// What is left to do when an exit is taken.
    fn exit(&mut self, hole: Hole, exit: Leaving) {
        let Leaving { kind, executed, tick, fields, taken } = exit;
        let number = self.number_exit(executed, fields, taken);
        let tick = tick && self.plan.ticks;
        if !tick && !self.reserves() {
            self.link(hole, number, kind, executed);
            return;
        }
        self.emit.fill(hole);
        self.index = executed.saturating_sub(1);
        self.spills = self.reserved();
        self.note(false);
        self.foot(number, fields);
        if tick {
            self.exit_with_tick(number, kind, executed);
        } else {
            let link = self.emit.jump_hole();
            self.link(link, number, kind, executed);
        }
    }

    /// The jump of an exit: to its stub until it is linked.
    fn link(&mut self, jump: Hole, number: u32, kind: ExitKind, executed: u16) -> u32 {
        let stub = self.stub(number);
        self.emit.fill_to(jump, u64::from(stub));
        let patch = self.emit.hole_place(jump);
        self.exits.push(Exit { kind, patch, stub, executed });
        stub
    }

    fn exit_with_tick(&mut self, number: u32, kind: ExitKind, executed: u16) {
        let ticks = cpu::field(offset_of!(Cpu, ticks));
        if self.flags_dead_at(kind) {
            self.emit.decrement_cell(ticks);
            let out = self.emit.branch_hole(Condition::EQUAL);
            let link = self.emit.jump_hole();
            let stub = self.link(link, number, kind, executed);
            self.emit.fill_to(out, u64::from(stub));
            return;
        }
        self.emit.store_cell(slot(SLOT_RCX), RCX);
        self.emit.load_cell(RCX, ticks);
        self.emit.lea(RCX, RCX, -1);
        self.emit.store_cell(ticks, RCX);
        self.emit.jump_if_rcx_zero(12);
        self.emit.load_cell(RCX, slot(SLOT_RCX));
        let link = self.emit.jump_hole();
        let stub = self.link(link, number, kind, executed);
        self.emit.load_cell(RCX, slot(SLOT_RCX));
        let _ = self.emit.jump(u64::from(stub));
    }

    /// Whether the code that an exit leads to, here in this superblock, needs no flags.
    fn flags_dead_at(&self, kind: ExitKind) -> bool {
        let ExitKind::Direct(target) = kind else { return false };
        let guest = self.superblock.guests.iter().find(|guest| guest.pc() == target);
        guest.is_some_and(|guest| guest.live_flags & ARITHMETIC_FLAGS == 0)
    }

    /// Tells the dispatcher which exit was taken.
    fn stub(&mut self, number: u32) -> u32 {
        let stub = self.far.here() as u32;
        self.far.store_cell_imm32(cpu::field(offset_of!(Cpu, exit)), number);
        let _ = self.far.jump(cpu::landmarks().exit_cache);
        stub
    }

    /// Control never goes on behind a trap. But INT3 is reported there, which must still be inside
    /// the translation; and the number of its first exit is the name of a superblock in events.
    fn trap(&mut self) {
        self.plain();
        let next = self.guest().instruction.next_ip();
        self.stop(ExitKind::Direct(next));
    }

    /// An instruction that runs as it is, but for an operand relative to the program counter.
    fn plain(&mut self) {
        let guest = self.guest();
        if guest.is_pc_relative() {
            self.pc_relative();
        } else if is_xsave(guest) {
            self.masked_xsave();
        } else if let Code::Popfq | Code::Popfw = guest.instruction.code() {
            self.pop_flags();
        } else if guest.instruction.is_invalid() {
            self.emit.raw(&[0x0f, 0x0b]);
        } else {
            let (bytes, length) = (guest.bytes, guest.instruction.len());
            self.emit.raw(&bytes[..length]);
        }
    }

    /// With the trap flag the guest would step through our code: then the engine pops. The flags
    /// are about to be overwritten, and the test reads what POPF reads, so it faults where POPF
    /// would.
    fn pop_flags(&mut self) {
        let (bytes, length) = (self.guest().bytes, self.guest().instruction.len());
        let pc = self.guest().pc();
        if self.guest().instruction.code() == Code::Popfw {
            self.emit.raw(&[0x66, 0xf7, 0x04, 0x24, 0x00, 0x01]); // test word ptr [rsp], 0x100
        } else {
            self.emit.raw(&[0x48, 0xf7, 0x04, 0x24, 0x00, 0x01, 0, 0]); // test qword ptr …
        }
        let hole = self.emit.branch_hole(Condition::NOT_EQUAL);
        self.leave(hole, ExitKind::Emulate(pc), false, false);
        self.emit.raw(&bytes[..length]);
    }

    /// The cache is far from the guest's code: the address goes through a register.
    fn pc_relative(&mut self) {
        let guest = self.guest();
        let address = guest.instruction.ip_rel_memory_address();
        let loaded = whole_load(guest);
        if guest.instruction.mnemonic() == iced_x86::Mnemonic::Lea
            && let Some(register) = loaded
        {
            let wide = guest.instruction.op0_register().is_gpr64();
            let value = if wide { address } else { address & 0xffff_ffff };
            self.emit.load_constant(register, value);
            return;
        }
        let scratch = loaded
            .filter(|register| matches!(*register, RAX | RCX | RDX | RBX | RSI | RDI))
            .unwrap_or_else(|| free_low_register(self.taken_registers(guest.facts.uses)));
        let rewritten = with_base(guest, scratch);
        let overwritten = Some(scratch) == loaded;
        self.spill(scratch, SLOT_SCRATCH);
        self.emit.load_constant(scratch, address);
        self.emit.raw(&rewritten);
        if overwritten {
            self.spills = self.spills.without(scratch);
        } else {
            self.unspill(scratch, SLOT_SCRATCH);
        }
    }

    /// Registers that are not free for a moment: the guest's and the observer's.
    fn taken_registers(&self, uses: Set) -> Set {
        let uses = match &self.observer {
            Some(observer) => {
                let uses = uses.with(observer.record).with(observer.scratch);
                observer.value.map_or(uses, |value| uses.with(value))
            }
            None => uses,
        };
        match &self.screen {
            Some(screen) => uses.with(screen.base).with(screen.scratch),
            None => uses,
        }
    }

    /// The guest believes in x87, SSE and AVX only; other state must not be stored over what it
    /// has behind its save area.
    fn masked_xsave(&mut self) {
        let guest = self.guest();
        let (bytes, length) = (guest.bytes, guest.instruction.len());
        self.spill(RAX, SLOT_SCRATCH);
        // movzx eax, al; and eax, 7 would touch flags: two bits of arithmetic by LEA-free means.
        self.emit.raw(&[0x0f, 0xb6, 0xc0]);
        self.emit.raw(&[0x0f, 0xb6, 0x80]);
        let table = XSAVE_MASKS.as_ptr() as u64;
        self.emit.raw(&(table as u32).to_le_bytes());
        self.emit.raw(&bytes[..length]);
        self.unspill(RAX, SLOT_SCRATCH);
    }

    /// A return inside a followed call: goes on here if it goes where the call came from.
    fn checked_return(&mut self, expected: u64) {
        self.spill(RCX, SLOT_RCX);
        self.spill(RDX, SLOT_RDX);
        self.emit.load(RCX, RSP, 0);
        self.emit.load_constant(RDX, expected.wrapping_neg());
        self.emit.lea_sum(RCX, RCX, RDX);
        // jrcxz over the side exit
        self.emit.jump_if_rcx_zero(5);
        let other = self.emit.jump_hole();
        self.emit.load_cell(RDX, slot(SLOT_RDX));
        self.emit.load_cell(RCX, slot(SLOT_RCX));
        self.spills = self.reserved();
        self.emit.lea(RSP, RSP, 8);
        let fields = self.fields();
        self.pending.push((other, Pending::ReturnElsewhere { index: self.index, fields }));
        self.inline_tick(true);
    }

    fn indirect(&mut self, target: Target) {
        self.spill(RCX, SLOT_RCX);
        self.spill(RDX, SLOT_RDX);
        match target {
            Target::Stack => {
                let guest = self.guest();
                let extra = if guest.instruction.op_count() == 1 {
                    i32::from(guest.instruction.immediate16())
                } else {
                    0
                };
                self.emit.load(RDX, RSP, 0);
                self.look_up();
                self.emit.lea(RSP, RSP, 8 + extra);
            }
            Target::Operand => {
                self.load_target();
                self.look_up();
                if self.guest().facts.flow == Flow::IndirectCall {
                    self.call();
                }
            }
        }
        self.go(self.fields());
    }

    /// The target of an indirect jump or call to rdx.
    fn load_target(&mut self) {
        let guest = self.guest();
        if let Some(register) = number(guest.instruction.op0_register()) {
            if register != RDX {
                self.emit.copy(RDX, register);
            }
        } else if guest.is_pc_relative() {
            let address = guest.instruction.ip_rel_memory_address();
            let segment: &[u8] = match guest.instruction.segment_prefix() {
                Register::FS => &[0x64],
                Register::GS => &[0x65],
                _ => &[],
            };
            self.emit.load_constant(RDX, address);
            self.emit.raw(segment);
            self.emit.load(RDX, RDX, 0);
        } else {
            let load = load_of_branch_operand(guest);
            self.emit.raw(&load);
        }
    }

    /// Loads to rcx where the translation begins that probably belongs to the target in rdx. For a
    /// target that no program can have there is nothing to load and this faults: the branch has
    /// not happened yet, as on the processor.
    fn look_up(&mut self) {
        self.emit.select_bits(RCX, RDX, cpu::field(offset_of!(Cpu, indirect_mask)));
        self.emit.load_entry(RCX, layout::INDIRECT_TABLE);
    }

    /// Completes the record of a superblock that is left by an indirect branch.
    fn foot_of_indirect(&mut self, fields: u16) {
        if self.observer.is_some() {
            let executed = self.index + 1;
            let number = self.number_exit(executed, fields, false);
            self.foot(number, fields);
            self.exits.push(Exit { kind: ExitKind::Indirect, patch: 0, stub: 0, executed });
        } else {
            self.foot(0, 0);
        }
    }

    /// To the translation that was looked up; its prefix makes sure.
    fn go(&mut self, fields: u16) {
        self.foot_of_indirect(fields);
        if self.plan.ticks {
            let ticks = cpu::field(offset_of!(Cpu, ticks));
            self.emit.load_cell(RCX, ticks);
            self.emit.lea(RCX, RCX, -1);
            self.emit.store_cell(ticks, RCX);
            // jrcxz over the lookup and the jump
            self.emit.jump_if_rcx_zero(18);
            self.look_up();
        }
        self.emit.jump_register(RCX);
        if self.plan.ticks {
            let _ = self.emit.jump(self.shared.table_miss);
        }
    }
}

/// The shadow has one byte for so many address bits less.
const SHADOW_SHIFT: u32 = events::plan::GRANULE.trailing_zeros();

enum Target {
    Stack,
    Operand,
}

/// `XSAVE_MASKS[low byte of eax]` is what the guest may have of it.
static XSAVE_MASKS: [u8; 256] = {
    let mut masks = [0; 256];
    let mut index = 0;
    while index < 256 {
        masks[index] = index as u8 & cpu::VECTOR_MASK as u8;
        index += 1;
    }
    masks
};

fn is_xsave(guest: &Guest) -> bool {
    use iced_x86::Mnemonic as M;
    matches!(
        guest.instruction.mnemonic(),
        M::Xsave
            | M::Xsave64
            | M::Xsavec
            | M::Xsavec64
            | M::Xsaveopt
            | M::Xsaveopt64
            | M::Xrstor
            | M::Xrstor64
    )
}

/// The general register that the instruction does nothing but load, if it is such a one.
fn whole_load(guest: &Guest) -> Option<u8> {
    use iced_x86::Mnemonic as M;
    let instruction = &guest.instruction;
    let loads = matches!(instruction.mnemonic(), M::Mov | M::Lea | M::Movzx | M::Movsx | M::Movsxd);
    let register = instruction.op0_register();
    let whole = register.is_gpr32() || register.is_gpr64();
    if loads && whole { number(register) } else { None }
}

/// A register below r8 that the instruction does not use.
fn free_low_register(uses: Set) -> u8 {
    [RAX, RSI, RDI, RDX, RCX, RBX]
        .into_iter()
        .find(|register| !uses.has(*register))
        .expect("no instruction with a memory operand uses six registers more")
}

/// The instruction with `[scratch]` in place of its operand relative to the program counter.
/// `scratch` is below r8 and neither rsp nor rbp, so neither SIB nor displacement is needed.
fn with_base(guest: &Guest, scratch: u8) -> Vec<u8> {
    debug_assert!(scratch < 8 && scratch != RSP && scratch != RBP);
    let bytes = guest.bytes();
    let modrm = displacement_offset(guest) - 1;
    let mut out = Vec::with_capacity(15);
    out.extend_from_slice(&bytes[..modrm]);
    clear_base_extension(&mut out);
    out.push(bytes[modrm] & 0x38 | scratch);
    out.extend_from_slice(&bytes[modrm + 5..]);
    out
}

fn displacement_offset(guest: &Guest) -> usize {
    // The displacement is the last field but for immediates.
    let mut decoder =
        iced_x86::Decoder::with_ip(64, guest.bytes(), guest.pc(), iced_x86::DecoderOptions::NONE);
    let instruction = decoder.decode();
    decoder.get_constant_offsets(&instruction).displacement_offset()
}

/// Clears the bit that would make the base register r8 or above, in REX or VEX.
fn clear_base_extension(prefixes: &mut [u8]) {
    let Some(first) = prefixes.iter().position(|byte| {
        !matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3)
    }) else {
        return;
    };
    match prefixes[first] {
        0x40..=0x4f => prefixes[first] &= !1,
        0xc4 if prefixes.len() > first + 1 => prefixes[first + 1] |= 0x20,
        _ => {}
    }
}

/// `jmp [operand]` or `call [operand]` turned into `mov rdx, [operand]`.
fn load_of_branch_operand(guest: &Guest) -> Vec<u8> {
    let bytes = guest.bytes();
    let opcode = bytes.iter().position(|byte| *byte == 0xff).expect("an indirect branch is FF");
    let mut out = Vec::with_capacity(15);
    let mut rex = 0x48;
    for byte in &bytes[..opcode] {
        match byte {
            0x40..=0x4f => rex |= byte & 3,
            0x26 | 0x2e | 0x36 | 0x3e | 0xf2 | 0xf3 => {} // hints and BND mean nothing here
            prefix => out.push(*prefix),
        }
    }
    out.extend_from_slice(&[rex, 0x8b, bytes[opcode + 1] & 0xc7 | RDX << 3]);
    out.extend_from_slice(&bytes[opcode + 2..]);
    out
}
