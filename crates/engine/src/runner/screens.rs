//! **Screens**: inline tests that let the ordinary pass. What they stop is a suspicion, which the host
//! confirms or drops by a replay; so a screen may miss something and may stop too much, and is an
//! accelerator either way.
//!
//! Each kind has a folder with the same three parts:
//!
//! | | `arrange`: its tables | `inline`: what is emitted | `look`: what becomes of a hit |
//! |---|---|---|---|
//! | [`shadow`] | a byte for eight of the guest's | a test of every access | which bytes are touched exactly |
//! | [`heap`] | blocks, painted into the shadow | the same, tight | whether they are a live block's |
//! | [`provenance`] | a memory tag for each block | tags of pointer and address compared | whether the blocks differ |
//! | [`allocations`] | a line for each block | ordinary calls are entered | whether a call is invalid |
//! | [`poison`] | what nobody wrote holds a mark | comparisons look for it | whether it is the allocator's own |
//!
//! [`returns`] is a look without a test: where control comes to the dispatcher for the first time anyway.
//!
//! This file is where they are registered: [`Screens`] keeps the tables, and each function below goes
//! through the kinds; [`inline`] does so for what is emitted. [`allocators`] is what those that follow calls
//! have in common.
//!
//! **Where a new kind goes.** A variant of `events::plan::Screen` with what it is asked, compared with the
//! other kinds in `events::plan::Conflict`; a variant of `events::Suspicion` with what it saw; a folder
//! here; a field of [`Screens`], arranged in [`Engine::arrange_screens`]; a call in [`inline`] before or
//! behind an instruction; a look in [`look`], which is told by [`Stage`] which test has stopped. The compiler
//! asks for all of these but the last two. Two kinds are to come:
//!
//! * **A value against its place.** `arrange`: a table with a slot for each place (first value, bits that
//!   have varied), numbered when a superblock is translated. `inline`: behind a load and before a store, the
//!   value is XORed with the first, masked with the bits that have not varied, and what is left must be
//!   zero: the same two forms of a test as the shadow's ([`shadow`]), as flags are dead or not. `look`:
//!   widens the slot, and tells what was new. The observer's third register (`translate::observe`) has the
//!   value already where values are recorded.
//! * **The last writer against its reader.** `arrange`: a second shadow, of 16-bit numbers of writers, and a
//!   set of writers for each reader. `inline`: a store writes its number where [`shadow`] only looks, a
//!   load tests what it finds against its set. `look`: adds to the set, and tells who wrote.
//!   `translate::places` says which accesses share a test.

pub mod allocations;
pub mod allocators;
pub mod heap;
pub mod inline;
pub mod poison;
pub mod provenance;
mod returns;
pub mod shadow;

use super::clock;
use super::cpu::{Cpu, Registers};
use super::engine::Engine;
use super::report;
use super::thread::Thread;
use super::translate::accesses::{self, Accesses};
use crate::layout;
use allocations::Allocations;
use events::plan::{CONTRACTS, Plan, Screen};
use events::record::Entry;
use events::suspicion::Suspicion;
use heap::Heap;
use iced_x86::InstructionInfoFactory;
use poison::Poison;
use shadow::Table;
use std::ops::Range;

/// The tables of all kinds. Once there, they stay: a plan that asks again goes on with them.
#[derive(Default)]
pub struct Screens {
    /// What accesses are tested against, by [`shadow`] and [`heap`].
    pub shadow: Option<Table>,
    /// Blocks of the guest's heap.
    pub heap: Option<Heap>,
    /// The same for calls alone.
    pub allocations: Option<Allocations>,
    /// Poisoned memory.
    pub poison: Option<Poison>,
}

/// The calls of allocators that a thread is in, as each kind of screen knows them.
#[derive(Default)]
pub struct Calls {
    /// What it does there is not tested.
    pub heap: Option<allocators::Call>,
    /// What it is handed there is poisoned.
    pub poison: Option<allocators::Call>,
    /// What is entered in the table, unless translated code knows it.
    pub allocation: Option<allocations::Call>,
}

impl Calls {
    /// Puts what translated code has to know where it finds it.
    pub fn move_in(&self, cpu: &mut Cpu) {
        cpu.shadow = heap::shadow_of(self);
        cpu.tag_mask = provenance::mask(self.heap.is_some());
        cpu.allocation.stack = allocations::stack_of(self);
    }
}

/// Which test of a translation has stopped an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// That of its accesses and of the addresses that it makes.
    Accesses,
    /// That of what it compares.
    Operands,
}

impl Engine {
    /// Makes ready for the screens of a plan.
    pub fn arrange_screens(&mut self, plan: &Plan) {
        if plan.screens.iter().any(|screen| matches!(screen, Screen::Shadow(_) | Screen::Heap(_))) {
            self.claim_tables();
        }
        let screens = &mut self.observed.screens;
        for screen in &plan.screens {
            match screen {
                Screen::Shadow(asked) => {
                    let table = screens.shadow.get_or_insert_with(new_table);
                    asked.paint.iter().for_each(|paint| table.paint(paint));
                }
                Screen::Heap(asked) => {
                    screens.shadow.get_or_insert_with(new_table);
                    screens.heap.get_or_insert_default().arrange(&mut self.cpu, asked);
                }
                Screen::Allocations(asked) => {
                    screens.allocations.get_or_insert_default().arrange(asked);
                }
                Screen::Poison(asked) => screens.poison.get_or_insert_default().arrange(asked),
            }
        }
    }

    /// Accesses are going to be tested, which needs tables at fixed places.
    fn claim_tables(&self) {
        if self.process.memory.iter().any(|(range, _)| layout::is_in_tables(&range)) {
            report::unfit(TABLES_ARE_TAKEN);
        }
        layout::claim_tables();
    }

    /// A function of a screen has been found.
    pub fn add_to_screens(&mut self, function: u64, name: &str) {
        let Screens { heap, allocations, poison, shadow: _ } = &mut self.observed.screens;
        if let Some(heap) = heap {
            match name.strip_prefix(CONTRACTS) {
                Some(name) => heap.add_contract(function, name),
                None => drop(heap.allocators.add(function, name)),
            }
        }
        if let Some(poison) = poison {
            poison.allocators.add(function, name);
        }
        if let Some(allocations) = allocations {
            let code = self.process.memory.find(function);
            let library = code.is_some_and(|(_, code)| allocators::is_c_library(code));
            allocations.add_function(function, name, library);
        }
    }

    /// A function has been called: where its return address stands, and what it is.
    pub fn screen_call(
        &mut self,
        thread: &mut Thread,
        function: u64,
        at: (u64, u64),
        arguments: [u64; 6],
    ) {
        self.enter_allocation(thread, function, at, arguments);
        self.enter_heap(thread, function, at, arguments);
        self.enter_poison(thread, function, at, arguments);
    }

    /// The guest is where a function may return to, with this stack pointer and rax.
    pub fn screen_return(&mut self, thread: &mut Thread, pc: u64, at: (u64, u64)) {
        self.leave_allocation(thread, pc, at);
        self.leave_heap(thread, pc, at);
        self.leave_poison(thread, pc, at);
    }

    /// Writes down a suspicion.
    pub fn suspect(&mut self, pc: u64, suspicion: Suspicion) {
        let time = if self.config.plan.observe.ticks { clock::now(&self.cpu) } else { 0 };
        self.record(&Entry::Suspect { pc, time, suspicion });
    }

    /// The code of the C library that an instruction is part of.
    pub fn library(&self, pc: u64) -> Option<Range<u64>> {
        let (range, mapping) = self.process.memory.find(pc)?;
        allocators::is_c_library(mapping).then_some(range)
    }
}

/// The close look at the instruction that is next, except a repeated one: what does not pass becomes an
/// event.
pub fn look(engine: &mut Engine, thread: &Thread, stage: Stage) {
    let pc = engine.cpu.registers.pc;
    let instruction = engine.decode_one(pc);
    let accesses = accesses::of(&instruction, &mut InstructionInfoFactory::new());
    if matches!(accesses, Accesses::Repeat { .. }) {
        return;
    }
    match stage {
        Stage::Accesses => {
            shadow::look(engine, thread, &instruction);
            engine.look_at_library(pc);
            engine.look_at_addresses(&provenance::addresses::forms(&instruction, &accesses));
        }
        Stage::Operands => engine.suspect_compared(thread, pc),
    }
}

/// The same for a string instruction that has repeated from what registers were `before` to what they are
/// now.
pub fn look_back(engine: &mut Engine, before: &Registers) {
    shadow::look_back(engine, before);
}

/// Why accesses cannot be tested.
pub const TABLES_ARE_TAKEN: &str = "the program keeps tables of its own (0x2000_0000_0000 to \
    0x4000_0000_0000) where tests of its accesses have theirs, as programs do that are built with \
    ThreadSanitizer, MemorySanitizer or `go build -race`; these look for mistakes by themselves: use \
    `whydunit record`, or `whydunit run --rules none`";

fn new_table() -> Table {
    Table::new().unwrap_or_else(|error| report::refuse(&format!("no shadow: error {error}"), 0))
}
