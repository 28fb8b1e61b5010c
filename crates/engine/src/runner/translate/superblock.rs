//! Decodes a **superblock**: the guest code that one translation covers.
//!
//! It has one entry and many exits. It runs on past conditional branches (their taken side leaves),
//! through direct jumps, and into direct calls; a return inside such a call is checked against the
//! address that the call pushed. It ends where the target is not known, at the kernel, or when it
//! is long enough.

use super::accesses::{self, Accesses};
use super::facts::{self, ALL_FLAGS, Facts, Flow, Set};
use super::observe::NEVER_RESERVED;
use crate::runner::screens::allocations::Deed;
use crate::runner::sites;
use contracts::Contract;
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, OpKind, Register};
use std::collections::BTreeSet;
use std::ops::Range;

/// Most instructions of one superblock.
const MAX_INSTRUCTIONS: usize = 64;
/// Most conditional branches that a superblock runs past.
const MAX_BRANCHES: usize = 5;
/// Most instructions of a call that is followed.
const MAX_CALL: usize = 16;
/// Most calls that a superblock is inside of at once.
const MAX_CALL_DEPTH: usize = 4;

const PAGE: u64 = 4096;

/// What an instruction is in its superblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Executed as it is; control goes to the next.
    Plain,
    /// A conditional branch whose taken side leaves.
    SideBranch(u64),
    /// A direct jump whose target is the next instruction here.
    FollowedJump,
    /// A direct call whose target is the next instruction here.
    FollowedCall,
    /// A call whose callee is elsewhere; the next instruction here is the one behind it.
    Call,
    /// A return that probably goes to this address, the next instruction here.
    CheckedReturn(u64),
    /// Leaves the superblock, always as the last instruction.
    Last,
}

/// One guest instruction of a superblock.
pub struct Guest {
    /// Decoded form.
    pub instruction: Instruction,
    /// Its bytes.
    pub bytes: [u8; 15],
    /// Registers, flags, flow.
    pub facts: Facts,
    /// Memory, if it is observed.
    pub accesses: Accesses,
    /// What it is here.
    pub role: Role,
    /// Flags that may still be read, or be seen by a signal handler, before it executes.
    pub live_flags: u32,
}

impl Guest {
    /// Address of the instruction.
    pub fn pc(&self) -> u64 {
        self.instruction.ip()
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.instruction.len()]
    }

    /// Whether it has an operand in memory relative to the program counter.
    pub fn is_pc_relative(&self) -> bool {
        self.instruction.is_ip_rel_memory_operand()
    }
}

/// The decoded code.
pub struct Superblock {
    /// Where it starts.
    pub pc: u64,
    /// Its instructions in order of execution; never empty.
    pub guests: Vec<Guest>,
    /// Where control goes after the last instruction when that one does not say.
    pub next: u64,
    /// Whether it is one instruction for one execution.
    pub alone: bool,
    /// What it appends to the event stream when it is entered.
    pub marks: Marks,
    /// Whether its last instruction is an event for the schedule of a recording.
    pub event: bool,
    /// Whether its vectors may read past the ends of blocks, as the C library's string functions do.
    pub reads_on: bool,
    /// What the function promises that begins with it, if its calls are screened.
    pub contract: Option<&'static Contract>,
}

/// Records about the place where a superblock starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// A probed function is entered.
    pub enters: bool,
    /// A probed function may have returned.
    pub returns: bool,
    /// The engine follows calls itself: it is called instead of a record being written.
    pub follows: bool,
    /// Where the function may return to.
    pub sites: sites::Kind,
    /// What an ordinary call of it does to the table of [allocations](crate::runner::screens::allocations).
    pub deed: Option<Deed>,
    /// The number that the place has in that table, if only what is entered there returns to it.
    pub site: Option<u32>,
}

impl Superblock {
    /// Numbers of the pages that its code is on, in order of execution.
    pub fn pages(&self) -> impl Iterator<Item = u64> {
        let mut last = None;
        let both = |guest: &Guest| [guest.pc(), guest.instruction.next_ip() - 1];
        let pages = self.guests.iter().flat_map(both).map(|address| address / PAGE);
        pages.filter(move |page| last.replace(*page) != Some(*page))
    }
}

/// Gives the translator the guest's code.
pub trait CodeSource {
    /// The bytes that can be executed from `pc` on, as far as they reach; empty if none.
    fn code_at(&self, pc: u64) -> &[u8];
}

/// Why there is no superblock at a pc.
#[derive(Debug, PartialEq, Eq)]
pub struct NotExecutable(
    /// First address that cannot be fetched.
    pub u64,
);

/// A call that the superblock is inside of.
#[derive(Clone, Copy)]
struct Open {
    /// Index of the call.
    call: usize,
    /// The address behind it.
    back: u64,
}

struct Builder<'a, S> {
    source: &'a S,
    factory: InstructionInfoFactory,
    guests: Vec<Guest>,
    branches: usize,
    /// Calls that it is inside of.
    open: Vec<Open>,
    limit: usize,
    limits: Limits<'a>,
    used: Set,
}

/// What a superblock must keep to.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// Most instructions.
    pub instructions: usize,
    /// Whether one instruction is wanted, for one execution.
    pub alone: bool,
    /// General registers that it must not use, for the engine to work with.
    pub reserved: usize,
    /// Whether it may go on behind a call to elsewhere: not if one record is made of all of it.
    pub past_calls: bool,
    /// Whether memory accesses are wanted.
    pub accesses: bool,
    /// Instructions that must not be part of it, unless one is the first.
    pub once: &'a [u64],
    /// Whether repeated string instructions that may stop early stand by themselves, for the
    /// dispatcher to look after.
    pub repeats_alone: bool,
    /// Places where the dispatcher must be: a superblock may start there, but not go past.
    pub stops: &'a BTreeSet<u64>,
    /// Whether it may go on behind a locked instruction: not if a schedule decides there.
    pub past_locks: bool,
    /// Code that is observed, if not all is: a superblock is either inside or outside.
    pub code: &'a [Range<u64>],
}

impl<'a> Limits<'a> {
    /// So many instructions, and nothing observed.
    pub fn new(instructions: usize, stops: &'a BTreeSet<u64>) -> Self {
        let (reserved, accesses, repeats_alone, code) = (0, false, false, &[]);
        Self {
            instructions,
            alone: false,
            reserved,
            past_calls: true,
            accesses,
            once: &[],
            repeats_alone,
            stops,
            past_locks: true,
            code,
        }
    }

    /// Whether code at `pc` is observed.
    fn inside(&self, pc: u64) -> bool {
        self.code.is_empty() || self.code.iter().any(|range| range.contains(&pc))
    }
}

/// Decodes the superblock at `pc`.
pub fn decode<S: CodeSource>(
    source: &S,
    pc: u64,
    limits: Limits<'_>,
) -> Result<Superblock, NotExecutable> {
    let mut builder = Builder {
        source,
        factory: InstructionInfoFactory::new(),
        guests: Vec::with_capacity(MAX_INSTRUCTIONS),
        branches: 0,
        open: Vec::new(),
        limit: if limits.alone { 1 } else { limits.instructions.min(MAX_INSTRUCTIONS) },
        limits,
        used: NEVER_RESERVED.iter().fold(Set::default(), |set, register| set.with(*register)),
    };
    let mut next = builder.build(pc)?;
    while let Some(back) = builder.close() {
        next = back;
        if builder.guests.last().is_some_and(|guest| guest.role == Role::Call) {
            next = builder.build(back)?;
        }
    }
    let (guests, alone, marks) = (builder.guests, limits.alone, Marks::default());
    let last = guests.last().filter(|guest| guest.role == Role::Plain);
    let event = !limits.past_locks && last.is_some_and(|guest| is_locked(&guest.instruction));
    let mut superblock =
        Superblock { pc, guests, next, alone, marks, event, reads_on: false, contract: None };
    find_liveness(&mut superblock);
    Ok(superblock)
}

impl<S: CodeSource> Builder<'_, S> {
    /// Decodes until the superblock is complete; the address after its last instruction.
    fn build(&mut self, start: u64) -> Result<u64, NotExecutable> {
        let mut pc = start;
        while self.guests.len() < self.limit && !self.too_long_a_call() {
            if self.must_end_at(pc) {
                return Ok(pc);
            }
            let Some((instruction, bytes)) = self.fetch(pc) else {
                if self.guests.is_empty() {
                    return Err(NotExecutable(pc + self.source.code_at(pc).len() as u64));
                }
                return Ok(pc);
            };
            let facts = facts::of(&instruction, &mut self.factory);
            let accesses = if self.limits.accesses {
                accesses::of(&instruction, &mut self.factory)
            } else {
                Accesses::List(Vec::new())
            };
            if !self.guests.is_empty()
                && (self.stands_alone(&accesses) || !self.leaves_registers(&facts))
            {
                return Ok(pc);
            }
            self.used = Set(self.used.0 | facts.uses.0);
            let (role, next) = if self.stands_alone(&accesses) && facts.flow == Flow::Next {
                // By itself: the engine works out its accesses each time.
                self.limit = 0;
                (Role::Plain, instruction.next_ip())
            } else {
                self.place(&instruction, &facts)
            };
            self.guests.push(Guest {
                instruction,
                bytes,
                facts,
                accesses,
                role,
                live_flags: ALL_FLAGS,
            });
            pc = next;
            if !self.limits.past_locks && is_locked(&instruction) {
                self.limit = 0;
            }
            if role == Role::Last {
                break;
            }
        }
        Ok(pc)
    }

    /// Whether the superblock must not go on to `pc`.
    fn must_end_at(&self, pc: u64) -> bool {
        let Some(first) = self.guests.first() else { return false };
        self.limits.once.contains(&pc)
            || self.limits.stops.contains(&pc)
            || self.limits.inside(pc) != self.limits.inside(first.pc())
    }

    /// Whether the dispatcher must look after an instruction with these accesses each time.
    fn stands_alone(&self, accesses: &Accesses) -> bool {
        match accesses {
            Accesses::List(_) => false,
            Accesses::Repeat { .. } => self.limits.repeats_alone && !accesses.is_plain_repeat(),
            Accesses::Explicit => true,
        }
    }

    fn too_long_a_call(&self) -> bool {
        self.open.first().is_some_and(|open| self.guests.len() - open.call > MAX_CALL)
    }

    /// A call that does not return here is not followed at all: see [`super::lower::returns`].
    fn close(&mut self) -> Option<u64> {
        let Open { call, back } = *self.open.first()?;
        self.open.clear();
        self.guests.truncate(call + 1);
        self.guests[call].role = self.unfollowed(back);
        Some(back)
    }

    /// The role of a call to elsewhere.
    fn unfollowed(&self, back: u64) -> Role {
        let goes_on = self.limits.past_calls && self.open.is_empty() && self.can_follow(back);
        if goes_on { Role::Call } else { Role::Last }
    }

    /// Whether enough registers stay unused if this instruction is added.
    fn leaves_registers(&self, facts: &Facts) -> bool {
        let free = (!(self.used.0 | facts.uses.0)).count_ones() as usize;
        free >= self.limits.reserved
    }

    fn fetch(&self, pc: u64) -> Option<(Instruction, [u8; 15])> {
        let code = self.source.code_at(pc);
        let mut decoder = Decoder::with_ip(64, code, pc, DecoderOptions::NONE);
        let instruction = decoder.decode();
        if instruction.is_invalid()
            && decoder.last_error() == iced_x86::DecoderError::NoMoreBytes
            && code.len() < 15
        {
            return None;
        }
        let mut bytes = [0; 15];
        let length = instruction.len();
        bytes[..length].copy_from_slice(&code[..length]);
        Some((instruction, bytes))
    }

    /// The role of an instruction and the address of the one that follows it here.
    fn place(&mut self, instruction: &Instruction, facts: &Facts) -> (Role, u64) {
        let after = instruction.next_ip();
        match facts.flow {
            Flow::Next => (Role::Plain, after),
            Flow::Branch(target) | Flow::ShortBranch(target) => {
                self.branches += 1;
                if self.branches > MAX_BRANCHES || self.has(after) || !self.open.is_empty() {
                    (Role::Last, after)
                } else {
                    (Role::SideBranch(target), after)
                }
            }
            Flow::Jump(target) if self.can_follow(target) => (Role::FollowedJump, target),
            Flow::Call(target) if self.open.len() < MAX_CALL_DEPTH && self.can_follow(target) => {
                self.open.push(Open { call: self.guests.len(), back: after });
                (Role::FollowedCall, target)
            }
            Flow::Call(_) | Flow::IndirectCall => (self.unfollowed(after), after),
            Flow::Return if instruction.op_count() == 0 => match self.open.last() {
                Some(Open { back, .. }) if self.can_follow(*back) => {
                    let back = *back;
                    self.open.pop();
                    (Role::CheckedReturn(back), back)
                }
                _ => (Role::Last, after),
            },
            _ => (Role::Last, after),
        }
    }

    fn has(&self, pc: u64) -> bool {
        self.guests.iter().any(|guest| guest.pc() == pc)
    }

    /// Loops are left to linking: code that is here already is not decoded again.
    fn can_follow(&self, target: u64) -> bool {
        self.guests.len() + 1 < self.limit
            && !self.has(target)
            && !self.source.code_at(target).is_empty()
    }
}

/// Whether other threads see all of an instruction's access or nothing.
fn is_locked(instruction: &Instruction) -> bool {
    let exchanges = instruction.mnemonic() == iced_x86::Mnemonic::Xchg;
    let in_memory = (0..instruction.op_count()).any(|it| instruction.op_kind(it) == OpKind::Memory);
    instruction.has_lock_prefix() || exchanges && in_memory
}

/// Whether executing the instruction can raise a signal whose handler then sees the flags.
fn may_fault(guest: &Guest) -> bool {
    let instruction = &guest.instruction;
    let touches_memory = (0..instruction.op_count()).any(|operand| {
        matches!(
            instruction.op_kind(operand),
            OpKind::Memory
                | OpKind::MemorySegSI
                | OpKind::MemorySegESI
                | OpKind::MemorySegRSI
                | OpKind::MemorySegDI
                | OpKind::MemorySegEDI
                | OpKind::MemorySegRDI
                | OpKind::MemoryESDI
                | OpKind::MemoryESEDI
                | OpKind::MemoryESRDI
        )
    });
    let is_lea = instruction.mnemonic() == iced_x86::Mnemonic::Lea
        || instruction.mnemonic() == iced_x86::Mnemonic::Nop;
    (touches_memory && !is_lea)
        || instruction.is_stack_instruction()
        || matches!(
            instruction.mnemonic(),
            iced_x86::Mnemonic::Div
                | iced_x86::Mnemonic::Idiv
                | iced_x86::Mnemonic::Xlatb
                | iced_x86::Mnemonic::Maskmovq
                | iced_x86::Mnemonic::Maskmovdqu
        )
        || instruction.op0_register() == Register::None && instruction.op_count() == 0
        || facts::number(instruction.op0_register()).is_none()
}

fn find_liveness(superblock: &mut Superblock) {
    let mut flags = ALL_FLAGS;
    for guest in superblock.guests.iter_mut().rev() {
        let leaves = !matches!(guest.role, Role::Plain | Role::FollowedJump | Role::FollowedCall);
        if leaves {
            flags = ALL_FLAGS;
        }
        flags = flags & !guest.facts.flags_written | guest.facts.flags_read;
        if may_fault(guest) {
            flags = ALL_FLAGS;
        }
        guest.live_flags = flags;
    }
}

/// For tests: a superblock of these instructions and a return.
#[cfg(test)]
pub fn with_return(instructions: &[&[u8]]) -> Superblock {
    const START: u64 = 0x1000;
    struct Code(Vec<u8>);
    impl CodeSource for Code {
        fn code_at(&self, pc: u64) -> &[u8] {
            &self.0[((pc - START) as usize).min(self.0.len())..]
        }
    }
    let code = Code([instructions.concat(), vec![0xc3]].concat());
    let stops = std::collections::BTreeSet::new();
    decode(&code, START, Limits { accesses: true, ..Limits::new(64, &stops) }).expect("code")
}
