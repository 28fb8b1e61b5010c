//! **Stops**: places where the dispatcher must be when they are reached, for probes and patches.
//!
//! A superblock starts at a stop but never runs past one, and no translation is linked to it, so
//! the dispatcher comes by every time. A function probe makes a stop at the function and, when it
//! is called, another at the address it will return to. A call is known by where its return
//! address stands on the stack: recursion gives calls different places, and what `longjmp` has left
//! behind is forgotten when its place is used again. A function that jumps to another at its end
//! leaves it the place, and returns when that one does.

use super::address_map::AddressMap;
use super::cpu::cpu;
use super::engine::{Engine, decode_one, engine, note};
use super::guest::{self, Checked};
use super::memory::Mapping;
use super::signal::frame::GuestMemory;
use super::thread::Thread;
use super::translate::lower::Variant;
use events::Plan;
use events::patch::{Action, Patch};
use events::record;
use std::collections::BTreeSet;
use std::ops::Range;

/// What is to happen at places.
#[derive(Default)]
pub struct Stops {
    places: BTreeSet<u64>,
    stops: AddressMap<Stop>,
    /// Places that replay counts.
    watched: Vec<u64>,
    /// Functions that were found by name; other plans keep them.
    found: Vec<u64>,
    /// Calls under way, by where their return address stands.
    calls: AddressMap<Call>,
}

#[derive(Default)]
struct Stop {
    registers: u32,
    function: bool,
    /// How often it has been reached.
    count: u64,
    patches: Vec<Patch>,
}

struct Call {
    /// The function that was called, and those that have taken its place since by tail calls.
    functions: Vec<u64>,
    back: u64,
}

/// What the dispatcher does at a stop.
pub enum Reached {
    /// Goes on with this translation.
    On(Variant),
    /// Looks again where the guest is.
    Moved,
}

impl Stops {
    /// The stops that a plan asks for, besides those where calls under way return.
    pub fn arrange(&mut self, plan: &Plan) {
        self.stops.clear();
        for probe in &plan.probes {
            self.stops.entry(probe.pc).or_default().registers |= probe.registers;
        }
        let named: &[u64] = if plan.names.is_empty() { &[] } else { &self.found };
        for function in plan.functions.iter().chain(named) {
            self.stops.entry(*function).or_default().function = true;
        }
        for patch in &plan.patches {
            self.stops.entry(patch.pc).or_default().patches.push(patch.clone());
        }
        self.places = self.stops.keys().copied().collect();
        self.places.extend(self.calls.values().map(|call| call.back));
        self.places.extend(&self.watched);
    }

    /// Places that only somebody outside wants to be told of.
    pub fn watch(&mut self, places: Vec<u64>) {
        self.watched = places;
    }

    /// Those places.
    pub fn watched(&self) -> &[u64] {
        &self.watched
    }

    /// Where they are.
    pub fn places(&self) -> &BTreeSet<u64> {
        &self.places
    }

    /// A function that the plan names has been found.
    pub fn add_function(&mut self, function: u64) {
        self.found.push(function);
        self.stops.entry(function).or_default().function = true;
        self.places.insert(function);
    }

    /// Code has gone: what was found by name in it is not there any more.
    pub fn forget(&mut self, start: u64, end: u64) {
        let gone: Vec<u64> =
            self.found.iter().copied().filter(|at| (start..end).contains(at)).collect();
        self.found.retain(|at| !(start..end).contains(at));
        for place in gone {
            if let Some(stop) = self.stops.get_mut(&place) {
                stop.function = false;
            }
        }
    }
}

impl Engine {
    /// The guest has come to a stop.
    pub fn reach(&mut self, thread: &mut Thread, pc: u64) -> Reached {
        self.returned(thread, pc);
        let Some(stop) = self.stops.stops.get_mut(&pc) else { return Reached::On(Variant::Usual) };
        stop.count += 1;
        let (registers, function, count) = (stop.registers, stop.function, stop.count);
        let due = |patch: &&Patch| patch.execution.is_none_or(|execution| execution == count);
        let actions: Vec<Action> =
            stop.patches.iter().filter(due).map(|patch| patch.action.clone()).collect();
        if registers != 0 {
            self.record_probe(pc, registers);
        }
        if function {
            self.entered(thread, pc);
        }
        apply(&actions, pc, count)
    }

    /// A call that is under way may have come back here.
    fn returned(&mut self, thread: &mut Thread, pc: u64) {
        let general = &cpu().registers.general;
        let place = general[4].wrapping_sub(8);
        if self.stops.calls.get(&place).is_none_or(|call| call.back != pc) {
            return;
        }
        let call = self.stops.calls.remove(&place);
        for function in call.iter().flat_map(|call| call.functions.iter().rev()) {
            let words = [*function, place, general[0]];
            let mut bytes = record::RETURN.to_le_bytes().to_vec();
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            self.record(&bytes);
        }
        if let Some(heap) = &mut self.heap {
            heap.returned(thread, place, general[0]);
        }
    }

    /// A word of the guest's, which is on its stack if all is well: there the kernel need not be
    /// asked, and stops of allocators take half as long.
    fn word(&self, address: u64) -> Option<u64> {
        let is_plain = |(range, mapping): (Range<u64>, &Mapping)| {
            let readable = mapping.protection & libc::PROT_READ != 0;
            readable && mapping.file.is_none() && !mapping.shared && range.end - address >= 8
        };
        if !self.memory.find(address).is_some_and(is_plain) {
            return guest::read_u64(address);
        }
        // SAFETY: private memory of the guest's, without a file that could be too short, that can
        // be read; whoever could change that waits for the baton.
        Some(unsafe { (address as *const u64).read_unaligned() })
    }

    fn record_probe(&mut self, pc: u64, registers: u32) {
        let cpu = &cpu().registers;
        let mut bytes = record::PROBE.to_le_bytes().to_vec();
        bytes.extend(pc.to_le_bytes());
        let registers = registers & events::plan::ALL_REGISTERS;
        bytes.extend(registers.to_le_bytes());
        for (number, value) in cpu.general.iter().chain([&cpu.flags]).enumerate() {
            if registers & 1 << number != 0 {
                bytes.extend(value.to_le_bytes());
            }
        }
        self.record(&bytes);
    }

    fn entered(&mut self, thread: &mut Thread, function: u64) {
        let general = &cpu().registers.general;
        let stack = general[4];
        let Some(back) = self.word(stack) else { return };
        let mut bytes = record::ENTER.to_le_bytes().to_vec();
        bytes.extend([function, back, stack].iter().flat_map(|word| word.to_le_bytes()));
        let arguments = [7, 6, 2, 1, 8, 9].map(|register| general[register]);
        bytes.extend(arguments.iter().flat_map(|argument| argument.to_le_bytes()));
        self.record(&bytes);
        if let Some(heap) = &mut self.heap {
            heap.entered(thread, function, stack, arguments);
        }
        match self.stops.calls.get_mut(&stack) {
            Some(call) if call.back == back && !call.functions.contains(&function) => {
                call.functions.push(function);
            }
            _ => {
                self.stops.calls.insert(stack, Call { functions: vec![function], back });
            }
        }
        if self.stops.places.insert(back) {
            self.cache.drop_range(back, back + 1);
        }
    }
}

/// Does what patches say, at an execution of their place.
fn apply(actions: &[Action], pc: u64, execution: u64) -> Reached {
    let mut reached = Reached::On(Variant::Usual);
    for action in actions {
        match *action {
            Action::Flip if decode_one(pc).is_jcc_short_or_near() || is_loop(pc) => {
                reached = Reached::On(Variant::Flipped);
            }
            // Once is enough.
            Action::Flip if execution > 1 => {}
            Action::Flip => {
                note(&format!("the instruction at {pc:#x} is no conditional branch to flip"));
            }
            Action::Skip => {
                cpu().registers.pc = decode_one(pc).next_ip();
                reached = Reached::Moved;
            }
            Action::SetRegister { register, value } => {
                cpu().registers.general[register as usize & 15] = value;
            }
            Action::SetMemory { address, size, value } => {
                let bytes = &value.to_le_bytes()[..(size as usize).min(8)];
                let written = Checked.write(address, bytes)
                    || engine().unguard_all() && Checked.write(address, bytes);
                if !written {
                    note(&format!("there is no memory at {address:#x} to set, as a patch asks"));
                }
            }
        }
    }
    reached
}

fn is_loop(pc: u64) -> bool {
    let instruction = decode_one(pc);
    instruction.is_loop() || instruction.is_loopcc() || instruction.is_jcx_short()
}
