//! **Stops**: places where something is to happen when they are reached, for probes and patches.
//!
//! A superblock starts at such a place but never runs past one. At most of them the dispatcher must
//! be, so no translation is linked to them. Function probes do without: the translation of a
//! function's entry appends its record itself, and so does that of a **site**, an address that a
//! probed function may return to ([`super::translate::lower`]). The dispatcher comes by only when a
//! function is called from a site that is not known yet. Which call a return belongs to the consumer
//! works out (`events::calls`).

use super::address_map::AddressMap;
use super::cpu::Cpu;
use super::engine::{Engine, note};
use super::guest::{self, Checked};
use super::memory::Mapping;
use super::signal::frame::GuestMemory;
use super::sites;
use super::thread::Thread;
use super::translate::accesses::{self, Accesses};
use super::translate::lower::Variant;
use super::translate::superblock::Marks;
use contracts::Contract;
use events::Plan;
use events::patch::{Action, Patch};
use events::plan::{CONTRACTS, Screen};
use events::record::list;
use iced_x86::{FlowControl, InstructionInfoFactory, Mnemonic};
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
    found: Vec<(u64, String)>,
    /// Where probed functions have been called from: the addresses that they return to.
    sites: BTreeSet<u64>,
    /// Those of functions whose calls are events.
    reported: BTreeSet<u64>,
    /// Whether the engine itself follows calls.
    follows: bool,
    /// Whether anybody reads what is written at sites.
    emits: bool,
}

#[derive(Default)]
struct Stop {
    registers: u32,
    /// Whether a function begins there that is probed or followed.
    function: bool,
    /// Whether its calls are events.
    reports: bool,
    /// What it promises to touch, if that is reported.
    contract: Option<&'static Contract>,
    /// How often it has been reached.
    count: u64,
    patches: Vec<Patch>,
}

/// What the dispatcher does at a stop.
pub enum Reached {
    /// Goes on with this translation.
    On(Variant),
    /// Looks again where the guest is.
    Moved,
}

impl Stops {
    /// The stops that a plan asks for, besides those where calls under way may return.
    pub fn arrange(&mut self, plan: &Plan) {
        self.stops.clear();
        for probe in &plan.stops.probes {
            self.stops.entry(probe.pc).or_default().registers |= probe.registers;
        }
        for function in &plan.stops.functions {
            self.stop_at_function(*function, true);
        }
        let followed = plan.screens.iter().flat_map(Screen::functions);
        for function in followed.filter_map(|function| function.at.as_ref()).flatten() {
            self.stop_at_function(*function, false);
        }
        for (function, name) in self.found.clone() {
            if let Some(name) = name.strip_prefix(CONTRACTS) {
                if plan.stops.contracts {
                    self.stop_at_contract(function, name, plan);
                }
            } else if plan.names().any(|wanted| wanted == name) {
                self.stop_at_function(function, plan.stops.names.contains(&name));
            }
        }
        for (function, name) in &plan.stops.contracts_at {
            self.stop_at_contract(*function, name, plan);
        }
        for patch in &plan.patches {
            self.stops.entry(patch.pc).or_default().patches.push(patch.clone());
        }
        self.places = self.stops.keys().copied().collect();
        self.follows = plan.screens.iter().any(|screen| !screen.functions().is_empty());
        self.emits = plan.emits();
        if self.emits {
            self.places.extend(&self.sites);
        }
        self.places.extend(&self.watched);
    }

    fn stop_at_function(&mut self, function: u64, reports: bool) {
        let stop = self.stops.entry(function).or_default();
        stop.function = true;
        stop.reports |= reports;
    }

    /// A superblock begins where a function with a contract does. The dispatcher is there only if the calls
    /// are reported, not if they are screened.
    fn stop_at_contract(&mut self, function: u64, name: &str, plan: &Plan) {
        let reported = contracts::named(name).filter(|_| plan.heap().is_none());
        self.stops.entry(function).or_default().contract = reported;
    }

    /// Whether calls of a function are events.
    fn reports(&self, function: u64) -> bool {
        self.stops.get(&function).is_some_and(|stop| stop.reports)
    }

    /// Whether a probed function may return to a place, and it is reported.
    fn is_site(&self, pc: u64) -> bool {
        self.emits && self.sites.contains(&pc)
    }

    /// Whether returns to a site are events.
    pub fn is_reported(&self, site: u64) -> bool {
        self.reported.contains(&site)
    }

    /// What a translation of the code at a place appends by itself, if that is all there is to do.
    fn inline(&self, pc: u64) -> Option<Marks> {
        if self.watched.contains(&pc) {
            return None;
        }
        let stop = self.stops.get(&pc);
        let looks = |stop: &Stop| {
            stop.registers != 0 || !stop.patches.is_empty() || stop.contract.is_some()
        };
        if stop.is_some_and(looks) {
            return None;
        }
        let marks = Marks {
            enters: stop.is_some_and(|stop| stop.function),
            returns: self.is_site(pc),
            follows: self.follows,
            ..Marks::default()
        };
        // Nothing is to be done where a superblock only has to begin.
        let begins = stop.is_some_and(|stop| !stop.function);
        (marks.enters || marks.returns || begins).then_some(marks)
    }

    /// Places that only somebody outside wants to be reported of.
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
    pub fn add_function(&mut self, function: u64, name: String, plan: &Plan) {
        match name.strip_prefix(CONTRACTS) {
            Some(name) if plan.stops.contracts => self.stop_at_contract(function, name, plan),
            Some(_) => {}
            None => self.stop_at_function(function, plan.stops.names.contains(&name)),
        }
        self.places.insert(function);
        self.found.push((function, name));
    }

    /// Code has gone: what was found by name in it is not there any more.
    pub fn forget(&mut self, start: u64, end: u64) {
        let Self { found, stops, .. } = self;
        found.retain(|(at, _)| {
            let stays = !(start..end).contains(at);
            if let Some(stop) = stops.get_mut(at).filter(|_| !stays) {
                (stop.function, stop.reports, stop.contract) = (false, false, None);
            }
            stays
        });
    }
}

impl Engine {
    /// The guest has come to a stop.
    pub fn reach(&mut self, thread: &mut Thread, pc: u64) -> Reached {
        let general = &self.cpu.registers.general;
        if self.observed.stops.is_site(pc) {
            self.came_back(thread, pc, (general[4], general[0]));
        }
        let Some(stop) = self.observed.stops.stops.get_mut(&pc) else {
            return Reached::On(Variant::Usual);
        };
        stop.count += 1;
        let (registers, function, count) = (stop.registers, stop.function, stop.count);
        let contract = stop.contract;
        let due = |patch: &&Patch| patch.execution.is_none_or(|execution| execution == count);
        let actions: Vec<Action> =
            stop.patches.iter().filter(due).map(|patch| patch.action.clone()).collect();
        if registers != 0 {
            self.record_probe(pc, registers);
        }
        if let Some(contract) = contract {
            self.record_touches(pc, contract);
        }
        let stack = self.cpu.registers.general[4];
        if let Some(back) = if function { self.word(stack) } else { None } {
            self.entered(thread, pc, (stack, back), arguments(&self.cpu));
            self.add_site(pc, back);
        }
        self.apply(&actions, pc, count)
    }

    /// What the translation of the code at a place appends by itself. Nothing if the dispatcher has
    /// to be there, also because the first instruction must not be reached by single steps, as a
    /// signal would have it, or is looked after each time.
    pub fn marks(&self, pc: u64) -> Option<Marks> {
        let marks = self.observed.stops.inline(pc)?;
        let instruction = self.decode_one(pc);
        let shows_flags = matches!(
            instruction.mnemonic(),
            Mnemonic::Pushf
                | Mnemonic::Pushfd
                | Mnemonic::Pushfq
                | Mnemonic::Popf
                | Mnemonic::Popfd
                | Mnemonic::Popfq
        );
        // A record under way cannot be added to from outside.
        let follows = !marks.follows || !self.code.inside.records();
        let goes_on = !marks.enters || instruction.flow_control() == FlowControl::Next;
        let mut factory = InstructionInfoFactory::new();
        let plain = !self.code.inside.needs_accesses()
            || matches!(accesses::of(&instruction, &mut factory), Accesses::List(_));
        let marks = self.with_allocations(pc, marks);
        (!shows_flags && follows && goes_on && plain).then_some(marks)
    }

    /// A probed function is about to be called from somewhere that may not be known.
    pub fn learn(&mut self, thread: &mut Thread, function: u64) {
        match self.word(self.cpu.registers.general[4]) {
            Some(back) => self.add_site(function, back),
            // No call: there is no return address.
            None => thread.looked_after = Some((function, Variant::Untested)),
        }
    }

    fn add_site(&mut self, function: u64, back: u64) {
        let kind = self.kind_of_sites(function);
        let table = self.observed.screens.allocations.as_mut();
        let number = table.map_or(0, |table| table.number(back));
        sites::set(kind, back, number);
        if kind == sites::Kind::Passed {
            return;
        }
        let mut changed = self.observed.stops.sites.insert(back);
        if self.observed.stops.reports(function) {
            // It may be known as one where nothing is reported.
            changed |= self.observed.stops.reported.insert(back)
                && self.observed.screens.allocations.is_some();
        }
        if changed {
            self.observed.stops.places.insert(back);
            self.code.cache.drop_covering(back);
        }
    }

    /// With what translated code does to the table of allocations by itself at a place.
    fn with_allocations(&self, pc: u64, marks: Marks) -> Marks {
        let Some(table) = &self.observed.screens.allocations else { return marks };
        let unreported = marks.returns && !marks.enters && !self.observed.stops.is_reported(pc);
        Marks {
            sites: self.kind_of_sites(pc),
            deed: table.deed(pc).filter(|_| marks.enters && !marks.returns),
            site: table.known(pc).filter(|_| unreported),
            ..marks
        }
    }

    /// What happens where a function returns to.
    fn kind_of_sites(&self, function: u64) -> sites::Kind {
        match &self.observed.screens.allocations {
            Some(table) if table.is_alone(function) => sites::Kind::Passed,
            Some(table) if table.follows(function) => sites::Kind::Entered,
            _ => sites::Kind::Reported,
        }
    }

    /// A probed function may have returned here.
    fn came_back(&mut self, thread: &mut Thread, pc: u64, (stack, value): (u64, u64)) {
        if self.observed.stops.is_reported(pc) {
            self.record_back(pc, stack, value);
        }
        self.screen_return(thread, pc, (stack, value));
    }

    /// A word of the guest's, which is on its stack if all is well.
    fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.look(address, &mut bytes).then(|| u64::from_le_bytes(bytes))
    }

    /// Reads some bytes of the guest's. Where it is on its stack or heap the kernel need not be asked, and stops of
    /// allocators take half as long.
    pub fn look(&self, address: u64, bytes: &mut [u8]) -> bool {
        let length = bytes.len() as u64;
        let is_plain = |(range, mapping): (Range<u64>, &Mapping)| {
            let readable = mapping.protection & libc::PROT_READ != 0;
            readable && mapping.file.is_none() && !mapping.shared && range.end - address >= length
        };
        if !self.process.memory.find(address).is_some_and(is_plain) {
            return Checked.read(address, bytes);
        }
        // SAFETY: private memory of the guest's, without a file that could be too short, that can
        // be read; whoever could change that waits for the baton. The buffer is ours.
        unsafe {
            std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), bytes.len())
        };
        true
    }

    fn record_probe(&mut self, pc: u64, registers: u32) {
        let cpu = &self.cpu.registers;
        let registers = registers & events::plan::ALL_REGISTERS;
        let all = cpu.general.iter().chain([&cpu.flags]).enumerate();
        let wanted = all.filter(|(number, _)| registers & 1 << number != 0);
        let values: Vec<u64> = wanted.map(|(_, value)| *value).collect();
        self.record_bytes(&list::probe(pc, registers, &values));
    }

    /// Translated code has come to a place where calls are followed, and goes on by itself.
    pub fn followed(
        &mut self,
        thread: &mut Thread,
        (pc, marks): (u64, Marks),
        (stack, value): (u64, u64),
        (back, arguments): (u64, [u64; 6]),
    ) {
        if marks.returns {
            self.came_back(thread, pc, (stack, value));
        }
        if marks.enters {
            self.entered(thread, pc, (stack, back), arguments);
        }
    }

    fn entered(
        &mut self,
        thread: &mut Thread,
        function: u64,
        (stack, back): (u64, u64),
        arguments: [u64; 6],
    ) {
        if self.observed.stops.reports(function) {
            self.record_enter(function, (stack, back), arguments);
            self.observed.stops.reported.insert(back);
        }
        self.screen_call(thread, function, (stack, back), arguments);
    }
}

/// The arguments of the function that is entered: rdi, rsi, rdx, rcx, r8, r9.
pub fn arguments(cpu: &Cpu) -> [u64; 6] {
    let general = &cpu.registers.general;
    [7, 6, 2, 1, 8, 9].map(|register| general[register])
}

impl Engine {
    /// Does what patches say, at an execution of their place.
    fn apply(&mut self, actions: &[Action], pc: u64, execution: u64) -> Reached {
        let mut reached = Reached::On(Variant::Usual);
        for action in actions {
            match *action {
                Action::Flip if self.decode_one(pc).is_jcc_short_or_near() || self.is_loop(pc) => {
                    reached = Reached::On(Variant::Flipped);
                }
                // Once is enough.
                Action::Flip if execution > 1 => {}
                Action::Flip => {
                    note(&format!("the instruction at {pc:#x} is no conditional branch to flip"));
                }
                Action::Skip => {
                    self.cpu.registers.pc = self.decode_one(pc).next_ip();
                    reached = Reached::Moved;
                }
                Action::Jump { to } => {
                    self.cpu.registers.pc = to;
                    reached = Reached::Moved;
                }
                Action::Return => match guest::read_u64(self.cpu.registers.general[4]) {
                    Some(back) => {
                        let registers = &mut self.cpu.registers;
                        registers.pc = back;
                        registers.general[4] += 8;
                        registers.general[0] = 0;
                        reached = Reached::Moved;
                    }
                    None => note(&format!("there is nowhere to return to from {pc:#x}")),
                },
                Action::SetRegister { register, value } => {
                    self.cpu.registers.general[register as usize & 15] = value;
                }
                Action::SetMemory { address, size, value } => {
                    let bytes = &value.to_le_bytes()[..(size as usize).min(8)];
                    let written = Checked.write(address, bytes)
                        || self.unguard_all() && Checked.write(address, bytes);
                    if !written {
                        note(&format!(
                            "there is no memory at {address:#x} to set, as a patch asks"
                        ));
                    }
                }
            }
        }
        reached
    }

    fn is_loop(&self, pc: u64) -> bool {
        let instruction = self.decode_one(pc);
        instruction.is_loop() || instruction.is_loopcc() || instruction.is_jcx_short()
    }
}
