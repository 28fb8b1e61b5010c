//! What the guest's threads share, and the translations of its code. [`dispatch`] takes a thread from
//! one translation to the next.

pub mod dispatch;
mod left;
pub mod parts;

use super::cache::{Cache, Id};
use super::cpu::CpuBlock;
use super::events::Ring;
use super::load::Arguments;
use super::memory::Memory;
use super::numbers::Numbers;
use super::record;
use super::replay::Replayer;
use super::report;
use super::screens::{allocators, heap};
use super::signal::{Actions, SignalInfo};
use super::thread::Thread;
use super::translate::facts::Set;
use super::translate::instrument::Instrumentation;
use super::translate::lower::Variant;
use super::translate::observe;
use super::translate::superblock::{self, Limits, Superblock};
use crate::config::Config;
use crate::processor;
use crate::report::Message;
use ::events::record::{Entry, list};
use iced_x86::Instruction;
use parts::{Code, Logging, Observation, Process, Threads};
use std::path::PathBuf;

/// Everything that the guest's threads share.
pub struct Engine {
    /// Registers of the running thread, and what else translated code shares.
    pub cpu: CpuBlock,
    /// How to run.
    pub config: Config,
    /// Translations.
    pub code: Code,
    /// The guest's process.
    pub process: Process,
    /// Its threads.
    pub threads: Threads,
    /// The recording that is made or replayed.
    pub log: Logging,
    /// What is observed.
    pub observed: Observation,
}

impl Engine {
    /// An engine for a guest that has been loaded.
    pub fn new(
        config: Config,
        memory: Memory,
        executable: PathBuf,
        arguments: Arguments,
    ) -> Box<Self> {
        let cache = Cache::new()
            .unwrap_or_else(|error| report::refuse(&format!("no code cache: error {error}"), 0));
        let plan = config.plan.clone();
        // SAFETY: a process has one engine, which is made here.
        let mut cpu = unsafe { CpuBlock::claim() };
        let ring = (plan.emits() || config.controlled).then(|| {
            Ring::new(&mut cpu, config.rings, Numbers::of_this(config.proc).host, None)
                .unwrap_or_else(|error| report::refuse(&format!("no event ring: error {error}"), 0))
        });
        let process = Process {
            memory,
            actions: Actions::inherited(),
            numbers: Numbers::of_this(config.proc),
            executable,
            arguments,
        };
        let mut fresh = Box::new(Self {
            cpu,
            config,
            code: Code::new(cache),
            process,
            threads: Threads::default(),
            log: Logging::default(),
            observed: Observation::new(ring),
        });
        fresh.arrange(plan);
        fresh
    }

    /// A guest that handles faults can see flags that nothing else reads.
    pub fn handlers_changed(&mut self) {
        let handles = |signal: &i32| self.process.actions.get(*signal).is_handler();
        let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];
        let exact = faults.iter().any(handles);
        if exact && !std::mem::replace(&mut self.code.cache.exact_flags, exact) {
            self.code.cache.flush();
            self.define(&Entry::Flush.bytes());
        }
    }

    /// The replay under way.
    pub fn replayer(&mut self) -> &mut Replayer {
        self.log.replayer.as_mut().expect("a replay is under way")
    }

    /// Whether this process is recorded, now or in a region to come.
    pub fn is_recorded(&self) -> bool {
        self.config.recording.is_some()
    }

    /// The instruction at an address.
    pub fn decode_one(&self, pc: u64) -> Instruction {
        self.process.memory.decode_one(pc)
    }

    /// The dispositions that count for a thread.
    pub fn actions_of<'a>(&'a mut self, thread: &'a mut Thread) -> &'a mut Actions {
        thread.signals.actions.as_deref_mut().unwrap_or(&mut self.process.actions)
    }

    /// The translation of the code at `pc`, made now if need be.
    fn translation(&mut self, pc: u64, variant: Variant) -> Result<Id, Box<SignalInfo>> {
        let alone = self.code.alone == Some(pc);
        if !alone
            && self.code.stop_before.is_empty()
            && let Some(id) = self.code.cache.find(pc, variant)
        {
            return Ok(id);
        }
        let scope = &self.config.plan.scope;
        let instrumentation = if scope.covers(pc) { self.code.inside } else { self.code.outside };
        let (superblock, stop) = self.superblock(pc, variant, instrumentation)?;
        if !alone {
            self.guard_code(&superblock);
        }
        if self.code.cache.is_full() {
            self.code.cache.flush();
            self.define(&Entry::Flush.bytes());
        }
        let cache = &mut self.code.cache;
        let (id, shape) = if alone {
            cache.add_alone(&superblock, instrumentation, variant, stop)
        } else {
            cache.add(&superblock, instrumentation, variant, stop)
        };
        if let Some(shape) = shape {
            self.define(&list::define(&shape));
        }
        Ok(id)
    }

    /// The superblock at `pc`, and whether the dispatcher must be there each time it is reached.
    fn superblock(
        &self,
        pc: u64,
        variant: Variant,
        instrumentation: Instrumentation,
    ) -> Result<(Superblock, bool), Box<SignalInfo>> {
        let single = self.code.alone == Some(pc) || variant != Variant::Usual;
        let limits = Limits {
            instructions: self.config.superblock_limit,
            alone: single,
            reserved: instrumentation.reserved(),
            past_calls: !instrumentation.records(),
            accesses: instrumentation.needs_accesses(),
            repeats_alone: instrumentation.tests.is_some(),
            stops: self.observed.stops.places(),
            code: &self.config.plan.scope.code,
            once: &self.code.stop_before,
            past_locks: !record::minds_events(&self.config),
        };
        let mut superblock = superblock::decode(&self.process.memory, pc, limits)
            .map_err(|superblock::NotExecutable(at)| Box::new(self.fetch_fault(at)))?;
        let stop = self.observed.stops.places().contains(&pc);
        let marks = if stop { self.marks(pc) } else { None };
        superblock.marks = marks.filter(|_| variant == Variant::Usual).unwrap_or_default();
        let mapping = self.process.memory.find(pc);
        superblock.reads_on = mapping.is_some_and(|(_, mapping)| allocators::is_c_library(mapping));
        if !single && let Some(contract) = self.screened_contract(pc) {
            let taken = Set(heap::USED);
            if observe::free(&superblock, taken).count() >= instrumentation.reserved() {
                superblock.guests[0].facts.uses.0 |= heap::USED;
                superblock.contract = Some(contract);
            }
        }
        Ok((superblock, stop && marks.is_none()))
    }

    fn fetch_fault(&self, address: u64) -> SignalInfo {
        let mapped = self.process.memory.find(address).is_some();
        let code = if mapped { 2 } else { 1 };
        let bits = self.config.quirks.address_bits;
        if !processor::is_canonical(address, bits) {
            SignalInfo::fault(libc::SIGSEGV, libc::SI_KERNEL, 0, (13, 0))
        } else if mapped || address >= processor::user_end(bits) {
            // Of its own half the kernel does not tell what is mapped.
            SignalInfo::fault(libc::SIGSEGV, code, address, (14, 0x15))
        } else {
            SignalInfo::fault(libc::SIGSEGV, code, address, (14, 0x14))
        }
    }
}

/// Tells the user something, once the guest goes on.
pub fn note(text: &str) {
    report::send(&Message::Note(text.to_owned()));
}
