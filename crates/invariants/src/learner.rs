//! One run of a program, told as reads, writes and calls: what it adds to a model, and what it violates.

mod checks;

use crate::anomaly::{Accessed, Anomaly, Occurrence, What, ranked};
use crate::heap::{Allocating, Change, Heap, Made};
use crate::layout::Layout;
use crate::memory::{BlockNumber, Cell, Memory, reader};
use crate::model::{LineKey, Model, Role, Site, SiteId};
use crate::uses::{Definition, UseInRun};
use crate::value::{Kind, Value};
use checks::Firsts;
use rustc_hash::{FxHashMap, FxHashSet};

/// Whether violations are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// No: all that happens is ordinary.
    Training,
    /// Yes.
    Checking,
}

/// What instructions and addresses are called.
pub trait Names: Send {
    /// An instruction of the program's own.
    fn site(&mut self, pc: u64) -> Site;
    /// The static variable at an address.
    fn variable(&mut self, address: u64) -> Option<String>;
    /// The function that begins at an address.
    fn function(&mut self, address: u64) -> Option<String>;
}

/// Whose instructions they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The program's own.
    Own,
    /// Those of a library, for a call of the program's.
    Library,
    /// The kernel's, for a system call.
    Kernel,
}

/// Who accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The instruction; of a library or the kernel, the program's call of it.
    pub site: SiteId,
    /// Whose instruction accesses it.
    pub by: By,
    /// The thread's number.
    pub thread: u32,
    /// When.
    pub now: Occurrence,
}

/// A piece of memory that is accessed, and what it held or holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Where.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The value, if it is a number or an address of at most eight bytes.
    pub value: Option<u64>,
}

/// What is kept of a block that is watched.
struct WatchedBlock {
    kind: Kind,
    /// First address and size.
    extent: (u64, u64),
    /// Whether a library has it for itself: what libraries read there is nobody's concern.
    hidden: bool,
}

/// A call that has not returned.
struct Open {
    site: SiteId,
    function: u64,
}

/// Learns from a run, or checks it.
pub struct Learner {
    /// What is known, with the values of this run.
    pub model: Model,
    mode: Mode,
    layout: Layout,
    names: Box<dyn Names>,
    memory: Memory,
    heap: Heap,
    blocks: Vec<WatchedBlock>,
    /// What the run has shown of reads, by site.
    uses: Vec<UseInRun>,
    /// The same of writes.
    written: Vec<Definition>,
    sites: FxHashMap<u64, SiteId>,
    code_kinds: FxHashMap<u64, Option<Kind>>,
    executed: FxHashSet<u64>,
    lines: FxHashSet<LineKey>,
    open: FxHashMap<u64, Vec<Open>>,
    /// The definitions that the read under way uses; kept for its room.
    used_now: Vec<(SiteId, u32)>,
    anomalies: Vec<Anomaly>,
    firsts: Firsts,
    /// Where the stack was last heard of.
    stack_pointer: u64,
    statics: Kind,
    constants: Kind,
    stack: Kind,
    elsewhere: Kind,
}

/// What a run has given.
pub struct Learned {
    /// The model: with the run, if it was for training.
    pub model: Model,
    /// What is new, most noteworthy first.
    pub anomalies: Vec<Anomaly>,
    /// Points of the run, and those of them that the model did not know.
    pub points: (usize, usize),
}

/// Violations that are kept.
const MOST: usize = 100_000;
/// Where programs and their mappings are; hardly any number is that large and no address.
const ADDRESSES: std::ops::Range<u64> = 0x5000_0000_0000..0x8000_0000_0000;
/// A stack is no further from its pointer than this.
const STACK: u64 = 64 << 20;

impl Learner {
    /// A learner for one run of the program that a layout describes.
    pub fn new(mut model: Model, mode: Mode, layout: Layout, names: Box<dyn Names>) -> Self {
        let statics = model.kind("static data");
        let constants = model.kind("constant data");
        let stack = model.kind("a stack");
        let elsewhere = model.kind("memory of others");
        let unwatched = || WatchedBlock { kind: statics, extent: (0, 0), hidden: false };
        let mut memory = Memory::default();
        for range in &layout.data {
            let writer = SiteId::EXTERNAL;
            let cell = Cell { writer, thread: 0, block: BlockNumber::STATIC, readers: 0 };
            memory.watch(range.start, range.end - range.start, cell);
        }
        Self {
            model,
            mode,
            layout,
            names,
            memory,
            heap: Heap::default(),
            blocks: vec![unwatched(), unwatched()],
            uses: Vec::new(),
            written: Vec::new(),
            sites: FxHashMap::default(),
            code_kinds: FxHashMap::default(),
            executed: FxHashSet::default(),
            lines: FxHashSet::default(),
            open: FxHashMap::default(),
            used_now: Vec::new(),
            anomalies: Vec::new(),
            firsts: Firsts::default(),
            stack_pointer: 0,
            statics,
            constants,
            stack,
            elsewhere,
        }
    }

    /// One that is told nothing.
    #[must_use]
    pub(crate) fn idle() -> Self {
        struct Nameless;
        impl Names for Nameless {
            fn site(&mut self, _: u64) -> Site {
                Site::external()
            }
            fn variable(&mut self, _: u64) -> Option<String> {
                None
            }
            fn function(&mut self, _: u64) -> Option<String> {
                None
            }
        }
        Self::new(Model::new(""), Mode::Training, Layout::default(), Box::new(Nameless))
    }

    /// Which code is the program's own.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The site of an instruction.
    pub fn site(&mut self, pc: u64) -> SiteId {
        if let Some(known) = self.sites.get(&pc) {
            return *known;
        }
        let id = self.model.site(&self.names.site(pc));
        self.sites.insert(pc, id);
        id
    }

    /// An instruction of the program's own has executed.
    pub fn execute(&mut self, now: Occurrence) {
        if !self.executed.insert(now.pc) {
            return;
        }
        let site = self.names.site(now.pc);
        let line = site.key.line.clone();
        if !self.lines.contains(&line) {
            // Where nothing was learned before, everything is new.
            let checks = self.mode == Mode::Checking && self.model.runs > 0;
            if checks && !self.model.executed.contains_key(&line) {
                let id = self.model.site(&site);
                self.firsts.line(line.clone(), id, now);
            }
            self.lines.insert(line);
        }
    }

    /// Whether memory is watched at all.
    pub fn is_watched(&mut self, address: u64, size: u64) -> bool {
        self.memory.is_watched(address, size)
    }

    /// Memory is read.
    pub fn read(&mut self, who: Actor, access: Access) {
        let Access { address, size, .. } = access;
        let bit = reader(who.thread);
        let (mut followed, mut hidden) = (true, false);
        let mut used = std::mem::take(&mut self.used_now);
        used.clear();
        let blocks = &self.blocks;
        self.memory.update(address, size, |cell| {
            if cell.block == BlockNumber::NONE {
                return cell;
            }
            if !used.contains(&(cell.writer, cell.thread)) {
                used.push((cell.writer, cell.thread));
            }
            followed &= cell.readers & bit != 0;
            hidden |= blocks[cell.block.0 as usize].hidden;
            Cell { readers: cell.readers | bit, ..cell }
        });
        let others = who.by != By::Own;
        if !(used.is_empty() || others && hidden || self.reads_beyond(who, size)) {
            self.used(who, &used, followed, address);
            self.read_value(who, access, hidden);
        }
        self.used_now = used;
    }

    fn read_value(&mut self, who: Actor, access: Access, hidden: bool) {
        let Access { address, size, value } = access;
        if hidden {
            let block = self.memory.at(address).block;
            self.blocks[block.0 as usize].hidden = false;
        }
        if who.by == By::Own {
            self.describe(who.site, address);
            if let Some(value) = value {
                self.memory.store(address, size, Some(value));
                let value = self.value(value, size as u8);
                self.take(who, Role::Read, value, Some(address));
            }
        }
    }

    /// Whether a library reads a vector of which only a part need concern it: the C library looks for the end
    /// of a string by whole vectors, past it. Copies and comparisons of so many bytes do not.
    fn reads_beyond(&self, who: Actor, size: u64) -> bool {
        const EXACT: [&str; 5] = ["memcpy", "memmove", "mempcpy", "memcmp", "bcmp"];
        let called = self.model.point(who.site).what.as_deref().unwrap_or_default();
        who.by == By::Library && size > 8 && !EXACT.contains(&called)
    }

    /// Memory has been written.
    pub fn write(&mut self, who: Actor, access: Access) {
        let Access { address, size, value } = access;
        let mut overwritten: Vec<(SiteId, bool)> = Vec::new();
        let mut watched = false;
        self.memory.update(address, size, |cell| {
            if cell.block == BlockNumber::NONE {
                return cell;
            }
            watched = true;
            if cell.writer != SiteId::EXTERNAL {
                let before = (cell.writer, cell.readers != 0);
                if !overwritten.contains(&before) {
                    overwritten.push(before);
                }
            }
            Cell { writer: who.site, thread: who.thread, readers: 0, ..cell }
        });
        if !watched {
            return;
        }
        self.written_by(who.site).count += 1;
        // Library functions write their last bytes twice.
        overwritten.retain(|(definition, _)| who.by == By::Own || *definition != who.site);
        for (definition, was_used) in overwritten {
            self.overwritten(who, definition, was_used, address);
        }
        let before = self.memory.contents(address, size.min(8)).filter(|_| size <= 8);
        self.memory.store(address, size, value);
        let Some(value) = value.filter(|_| who.by == By::Own) else { return };
        self.describe(who.site, address);
        let kind = self.value(value, size as u8);
        self.take(who, Role::Written, kind, Some(address));
        if let (Some(before), Value::Number { .. }) = (before, kind)
            && self.object(before, size as u8).is_none()
        {
            let unused = 64 - 8 * size as u32;
            let bits = value.wrapping_sub(before) << unused >> unused;
            let difference = Value::Number { bits, size: size as u8 };
            self.take(who, Role::Difference, difference, Some(address));
        }
    }

    fn written_by(&mut self, site: SiteId) -> &mut Definition {
        let at = site.0 as usize;
        if at >= self.written.len() {
            self.written.resize(self.model.points.len(), Definition::default());
        }
        &mut self.written[at]
    }

    /// Something was written and either read before it was overwritten, or not.
    fn overwritten(&mut self, who: Actor, definition: SiteId, was_used: bool, address: u64) {
        let checking = self.mode == Mode::Checking;
        let in_run = self.written_by(definition);
        if was_used {
            in_run.used += 1;
        } else {
            in_run.lost += 1;
            if checking && in_run.lost == 1 {
                self.firsts.lost(definition, who, address);
            }
        }
    }

    /// A function that is told of has been called by the program at a site, if the program did.
    pub fn enter(
        &mut self,
        (function, back, stack, arguments): (u64, u64, u64, [u64; 6]),
        caller: Option<SiteId>,
        allocating: &mut Allocating,
        (thread, now): (u32, Occurrence),
    ) {
        let site = caller.unwrap_or(SiteId::EXTERNAL);
        self.heap.enter(&self.layout, allocating, (function, back, stack, arguments), site);
        let Some(called) = self.layout.functions.get(&function).cloned() else { return };
        let entry = called.own.then(|| self.site(function));
        // A stub of a function that the program itself has is no other call.
        let direct = caller.filter(|_| self.layout.is_own(back.wrapping_sub(1)));
        for (number, size) in (0..).zip(&called.arguments) {
            let Some(raw) = arguments.get(usize::from(number)) else { break };
            let value = self.value(*raw, *size);
            if let Some(entry) = entry {
                self.take(
                    Actor { site: entry, by: By::Own, thread, now },
                    Role::Entry(number),
                    value,
                    None,
                );
            }
            if let Some(site) = direct {
                self.take(
                    Actor { site, by: By::Own, thread, now },
                    Role::Argument(number),
                    value,
                    None,
                );
            }
        }
        if let Some(entry) = entry {
            self.model.point_mut(entry).what.get_or_insert_with(|| called.name.clone());
        }
        if let Some(site) = direct {
            self.model.point_mut(site).what.get_or_insert_with(|| called.name.clone());
            if called.result.is_some() {
                let open = self.open.entry(stack).or_default();
                open.retain(|open| open.function != function);
                open.push(Open { site, function });
            }
        }
    }

    /// It has returned a value.
    pub fn leave(
        &mut self,
        (function, stack, value): (u64, u64, u64),
        allocating: &mut Allocating,
        (thread, now): (u32, Occurrence),
    ) {
        if self.layout.allocators.contains_key(&function) {
            let change = self.heap.leave(&self.layout, allocating, (stack, value));
            self.change(change);
        }
        let Some(open) = self.open.get_mut(&stack) else { return };
        let Some(at) = open.iter().position(|open| open.function == function) else { return };
        let site = open.swap_remove(at).site;
        if open.is_empty() {
            self.open.remove(&stack);
        }
        let size = self.layout.functions.get(&function).and_then(|called| called.result);
        if let Some(size) = size {
            let value = self.value(value, size);
            self.take(Actor { site, by: By::Own, thread, now }, Role::Result, value, None);
        }
    }

    fn change(&mut self, change: Change) {
        if let Some((start, size)) = change.freed {
            self.memory.unwatch(start, size);
        }
        let Some(Made { start, size, site, hidden, grown }) = change.made else { return };
        let block =
            if grown && start > 0 { self.memory.at(start - 1).block } else { BlockNumber::NONE };
        let block = if block == BlockNumber::NONE {
            let name = block_name(&self.model.point(site).site);
            let kind = self.model.kind(&name);
            self.blocks.push(WatchedBlock { kind, extent: (start, size), hidden });
            BlockNumber(self.blocks.len() as u32 - 1)
        } else {
            self.blocks[block.0 as usize].extent.1 += size;
            block
        };
        let cell = Cell { writer: SiteId::EXTERNAL, thread: 0, block, readers: 0 };
        self.memory.watch(start, size, cell);
    }

    /// What a value is taken for.
    fn value(&mut self, bits: u64, size: u8) -> Value {
        match self.object(bits, size) {
            Some(kind) => Value::Object(kind),
            None => {
                let unused = 64 - 8 * u32::from(size.clamp(1, 8));
                Value::Number { bits: bits << unused >> unused, size: size.clamp(1, 8) }
            }
        }
    }

    /// The kind of object that a value is the address of, if it is one.
    fn object(&mut self, bits: u64, size: u8) -> Option<Kind> {
        /// Programs have nothing below.
        const LOWEST: u64 = 0x1_0000;
        if size != 8 || bits < LOWEST || bits >> 47 != 0 {
            return None;
        }
        match self.memory.at(bits).block {
            BlockNumber::NONE => {}
            BlockNumber::STATIC => return Some(self.statics),
            block => return Some(self.blocks[block.0 as usize].kind),
        }
        if self.layout.is_in_file(bits) {
            return Some(self.code_kind(bits).unwrap_or(self.constants));
        }
        if self.stack_pointer.abs_diff(bits) < STACK {
            return Some(self.stack);
        }
        ADDRESSES.contains(&bits).then_some(self.elsewhere)
    }

    fn code_kind(&mut self, address: u64) -> Option<Kind> {
        if let Some(known) = self.code_kinds.get(&address) {
            return *known;
        }
        let name = self.names.function(address);
        let kind = name.map(|name| self.model.kind(&format!("the function {name}")));
        self.code_kinds.insert(address, kind);
        kind
    }

    /// The stack pointer is about here.
    pub fn stack_at(&mut self, address: u64) {
        self.stack_pointer = address;
    }

    /// The name of what a site accesses, if that is a static variable.
    fn describe(&mut self, site: SiteId, address: u64) {
        if self.model.point(site).what.is_none()
            && self.memory.at(address).block == BlockNumber::STATIC
        {
            let name = self.names.variable(address).unwrap_or_default();
            self.model.point_mut(site).what = Some(name);
        }
    }

    fn take(&mut self, who: Actor, role: Role, value: Value, address: Option<u64>) {
        let violation = self.model.point_mut(who.site).hypothesis(role).take(value);
        let Some(violation) = violation else { return };
        if self.mode == Mode::Checking && self.anomalies.len() < MOST {
            let confidence = violation.drop;
            let what = What::Value { role, value, violation };
            let (site, first) = (who.site, who.now);
            let memory = address.map(|address| self.accessed(address));
            self.anomalies.push(Anomaly { what, site, confidence, first, count: 1, memory });
        }
    }

    fn accessed(&mut self, address: u64) -> Accessed {
        let block = self.memory.at(address).block;
        let is_heap = block.0 > BlockNumber::STATIC.0;
        Accessed { address, block: is_heap.then(|| self.blocks[block.0 as usize].extent) }
    }

    /// The run is over. One that was for training is added to the model.
    #[must_use]
    pub fn finish(mut self, new_code: f64) -> Learned {
        let points = self.points();
        if self.mode == Mode::Checking {
            self.check(new_code);
        } else {
            self.add();
        }
        let anomalies = std::mem::take(&mut self.anomalies);
        let line = |site: SiteId| self.model.point(site).site.key.line.clone();
        let anomalies = ranked(anomalies, line);
        Learned { model: self.model, anomalies, points }
    }

    /// Points of the run, and those that are new.
    fn points(&self) -> (usize, usize) {
        let sites: FxHashSet<SiteId> =
            self.sites.values().copied().filter(|site| *site != SiteId::EXTERNAL).collect();
        let is_new = |site: &&SiteId| {
            !self.model.executed.contains_key(&self.model.point(**site).site.key.line)
        };
        (sites.len(), sites.iter().filter(is_new).count())
    }

    fn add(&mut self) {
        let uses = self.uses.iter().enumerate().filter(|(_, run)| run.count > 0);
        for (site, run) in uses {
            self.model.points[site].reads.get_or_insert_default().add(run);
        }
        let written = self.written.iter().enumerate();
        for (site, run) in written.filter(|(_, run)| **run != Definition::default()) {
            self.model.points[site].writes.get_or_insert_default().merge(run);
        }
        for line in self.lines.drain() {
            *self.model.executed.entry(line).or_default() += 1;
        }
        self.model.runs += 1;
    }
}

/// What blocks of a place are called; the same in a rebuilt program.
fn block_name(site: &Site) -> String {
    let key = &site.key;
    match key.line.line {
        _ if key.line.module.is_empty() => "a block of a library".into(),
        Some(line) => format!("a block of {}, line {} of it", key.line.function, line + 1),
        None => format!("a block of {}+{:#x}", key.line.function, key.rank),
    }
}

#[cfg(test)]
mod tests;
