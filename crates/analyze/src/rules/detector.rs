//! Rules over a running machine: at every detection point the rules that may hold there are
//! evaluated, and what holds becomes a [`Hit`].
//!
//! The detector goes on after a hit, as the program does. The same hit at the same place is counted,
//! not repeated.

mod accesses;
mod calls;
mod finding;
mod kernel;
mod library;
mod scans;
mod window;

use super::evaluate::{self, Truth, Values};
use super::hit::{BlockHistory, Chain, Hit, Hits, Subject};
use super::machine::chains::Node;
use super::machine::code::Code;
use super::machine::descriptors::{self, Deed};
use super::machine::view::View;
use super::machine::{
    ARGUMENTS, Access, Freed, Inside, Machine, NEAR_STACK, Origin, RESULT, about_to,
};
use super::model::{
    Condition, EventKind, Point, REGION_ABSENT, REGION_GLOBAL, REGION_HEAP, REGION_LEFT,
    REGION_SCOPE, REGION_STACK, Rule, Set, Type,
};
use super::needs::Needs;
use super::ordinary;
use super::screen::{PointerState, Screen, Situation};
use super::state::{BlockId, NULL_PAGE, Pointer, Value};
use crate::model::blocks::Block;
use base::allocator::{Allocator, Allocators, Family, Role};
pub use kernel::{Absent, Buffers};
use library::{Judged, Library};
use rustc_hash::FxHashMap;
use scans::Scans;
use std::collections::BTreeSet;
use std::ops::Range;

/// A rule that is checked, and where it can hold.
#[derive(Clone)]
struct Armed {
    rule: Rule,
    screen: Screen,
    enabled: bool,
    /// Whether it certainly fails at ordinary allocations and releases.
    ordinary: bool,
    /// Whether it asks if bytes were written: decided when their value matters, not when they are
    /// read, as copies of padding are nobody's fault.
    deferred: bool,
    /// Evaluations that came to no decision.
    undecided: u64,
    /// Those that took too long.
    too_long: u32,
}

/// A rule that took too long so often is switched off: the program would not get on.
const MOST_TOO_LONG: u32 = 4;

/// What is known of the access that rules are asked about.
struct At<'a> {
    pc: u64,
    values: Vec<Value>,
    /// Of the variables of the detection point, in their order.
    chains: [Node; 6],
    subject: Subject,
    width: u64,
    releaser: Family,
    written: bool,
    pointed: Option<&'a [(BlockId, u64)]>,
}

/// A function that is looked at.
#[derive(Clone, Default)]
struct Function {
    names: Vec<String>,
    /// Those of its names that rules use.
    named: Vec<String>,
    allocator: Option<Allocator>,
}

#[derive(Clone, Copy, Default)]
struct Suppressed {
    sizes: bool,
    releases: bool,
}

/// Rules over the machine of one process.
#[derive(Clone)]
pub struct Detector {
    armed: Vec<Armed>,
    /// The situations in which any enabled rule at a read, at a write may hold.
    screens: [Screen; 2],
    /// The machine.
    pub machine: Machine,
    allocators: Allocators,
    functions: FxHashMap<u64, Function>,
    /// Whether no enabled rule may hold where an ordinary size is asked for, where an ordinary block
    /// is freed.
    suppressed: Suppressed,
    /// Code whose vector reads go past the ends of strings on purpose.
    lenient: Vec<Range<u64>>,
    /// Functions that are judged by their contracts.
    library: Library,
    /// Instructions of which somebody wants to know whether they could be judged, and those that could
    /// not: the pointer was older than the window.
    suspects: Vec<u64>,
    unknown: BTreeSet<u64>,
    /// Whether blocks of pointers are guessed.
    guesses: bool,
    scans: Scans,
    hits: Hits,
}

/// A rule that could not always be decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecided {
    /// The rule.
    pub rule: String,
    /// How often.
    pub times: u64,
    /// Whether it was switched off for that.
    pub given_up: bool,
}

impl Detector {
    /// A detector of these rules.
    #[must_use]
    pub fn new(rules: Vec<Rule>, allocators: Allocators) -> Self {
        let needs = rules.iter().map(Needs::of).fold(Needs::default(), Needs::and);
        let arm = |rule: Rule| {
            let screen = Screen::of(&rule);
            let deferred = screen.looks_at_writes();
            let ordinary = ordinary::fails(&rule);
            Armed { rule, screen, enabled: true, ordinary, deferred, undecided: 0, too_long: 0 }
        };
        let armed: Vec<Armed> = rules.into_iter().map(arm).collect();
        let watches_writes = armed.iter().any(|armed| armed.deferred);
        let mut detector = Self {
            armed,
            screens: [Screen::default(); 2],
            machine: Machine::new(needs, watches_writes),
            allocators,
            functions: FxHashMap::default(),
            suppressed: Suppressed::default(),
            lenient: Vec::new(),
            library: Library::default(),
            suspects: Vec::new(),
            unknown: BTreeSet::new(),
            guesses: false,
            scans: Scans::default(),
            hits: Hits::default(),
        };
        detector.rescreen();
        detector
    }

    /// Switches a rule on or off; what it needs goes on being observed. Whether there is such a
    /// rule.
    pub fn enable(&mut self, name: &str, enabled: bool) -> bool {
        let found = self.armed.iter_mut().find(|armed| armed.rule.name == name);
        let known = found.map(|armed| armed.enabled = enabled).is_some();
        self.rescreen();
        known
    }

    fn rescreen(&mut self) {
        for write in [false, true] {
            let here = |armed: &&Armed| {
                let at = matches!(armed.rule.point, Point::Deref { read, write: writes }
                    if if write { writes } else { read });
                at && armed.enabled && !armed.deferred
            };
            let screens = self.armed.iter().filter(here).map(|armed| armed.screen);
            self.screens[usize::from(write)] = screens.fold(Screen::default(), Screen::or);
        }
        let suppressed = |point: Point| {
            let here = |armed: &&Armed| armed.enabled && armed.rule.point == point;
            self.armed.iter().filter(here).all(|armed| armed.ordinary)
        };
        self.suppressed =
            Suppressed { sizes: suppressed(Point::Malloc), releases: suppressed(Point::Free) };
    }

    /// What the rules need to see.
    #[must_use]
    pub fn needs(&self) -> &Needs {
        &self.machine.needs
    }

    /// The functions whose calls and returns must be observed, by name.
    #[must_use]
    pub fn function_names(&self) -> Vec<String> {
        // Asking for any name is what makes the engine tell of files.
        let mut names: Vec<String> = vec!["main".to_owned()];
        names.extend(self.needs().functions.iter().cloned());
        if self.needs().allocations || self.machine.watches_writes {
            names.extend(self.allocators.names());
        }
        names
    }

    /// The function of a name is at an address.
    pub fn add_function(&mut self, address: u64, name: &str) {
        let function = self.functions.entry(address).or_default();
        if function.names.iter().any(|known| known == name) {
            return;
        }
        function.names.push(name.to_owned());
        if self.machine.needs.functions.contains(name) {
            function.named.push(name.to_owned());
        }
        function.allocator = function.allocator.or_else(|| self.allocators.named(name));
    }

    /// Code whose vector reads go past the ends of strings on purpose: the C library.
    pub fn add_lenient(&mut self, code: Range<u64>) {
        self.lenient.push(code);
    }

    /// Code that uses what nobody wrote on purpose.
    pub fn excuse(&mut self, code: Range<u64>) {
        self.machine.excused.push(code);
    }

    /// From here on this is a child that was forked: what was found before is its parent's.
    pub fn fork(&mut self) {
        self.machine.fork();
        self.hits = Hits::default();
        self.armed.iter_mut().for_each(|armed| armed.undecided = 0);
    }

    /// Whether what is left at the end was left to a child by its parent, which will tell of it.
    fn is_inherited(&self, rule: &Rule, hit: &Hit) -> bool {
        let at_end = rule.point == Point::Exit;
        let Some(forked) = self.machine.forked.filter(|_| at_end) else { return false };
        let block = hit.block.as_ref().is_some_and(|block| block.id <= self.machine.inherited);
        let descriptor = match &hit.subject {
            Subject::Descriptor { number, .. } => {
                self.machine.descriptors.get(*number).opened.is_none_or(|time| time <= forked)
            }
            _ => false,
        };
        block || descriptor
    }

    /// Findings beyond what is kept.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.hits.dropped
    }

    /// What was found, in the order of the first of each.
    #[must_use]
    pub fn hits(&self) -> &[Hit] {
        self.hits.all()
    }

    /// Rules that could not always be decided.
    #[must_use]
    pub fn undecided(&self) -> Vec<Undecided> {
        let some = self.armed.iter().filter(|armed| armed.undecided > 0);
        let undecided = |armed: &Armed| Undecided {
            rule: armed.rule.name.clone(),
            times: armed.undecided,
            given_up: armed.too_long >= MOST_TOO_LONG,
        };
        some.map(undecided).collect()
    }

    fn descriptor(&mut self, pc: u64, number: u64, arguments: &[u64; 6], answer: i64) {
        let deed = descriptors::deed(number, arguments, answer);
        let (time, stack) = (self.machine.time, self.callers());
        match deed {
            Deed::Opens(descriptor) => {
                let stack = self.machine.keep_stack(stack);
                self.machine.descriptors.open(descriptor, time, stack);
            }
            Deed::Closes(descriptor) => {
                self.descriptor_point(pc, descriptor, Point::Close);
                if answer == 0 {
                    let stack = self.machine.keep_stack(stack);
                    self.machine.descriptors.close(descriptor, time, stack);
                }
            }
            Deed::Uses(descriptor) => self.descriptor_point(pc, descriptor, Point::Use),
            Deed::ClosesRange(first, last) => {
                self.machine.descriptors.close_range(first, last, time);
            }
            Deed::OpensTwo | Deed::Nothing => {}
        }
    }

    fn descriptor_point(&mut self, pc: u64, descriptor: i64, point: Point) {
        let values = vec![Value::Number(i128::from(descriptor))];
        let subject = self.descriptor_subject(descriptor);
        let at = At { subject, ..self.at_call(pc.wrapping_add(1), values, "") };
        self.evaluate(&at, |armed| armed.rule.point == point);
    }

    fn callers(&self) -> Vec<u64> {
        self.machine.running().calls.callers()
    }

    /// The program is about to end.
    pub fn exit(&mut self) {
        let pointed = self.pointed(|armed| armed.rule.point == Point::Exit);
        let at = At {
            pointed: Some(&pointed),
            subject: Subject::End,
            ..self.at_call(1, Vec::new(), "")
        };
        self.evaluate(&at, |armed| armed.rule.point == Point::Exit);
    }

    /// Blocks that the program still has a pointer to, if a rule asks for them.
    fn pointed(&self, wanted: impl Fn(&Armed) -> bool) -> Vec<(BlockId, u64)> {
        let asks =
            |armed: &Armed| armed.enabled && Needs::of(&armed.rule).pointers && wanted(armed);
        if !self.armed.iter().any(asks) {
            return Vec::new();
        }
        let in_use = |(place, _): &(u64, BlockId)| *place == 0 || self.is_in_use(*place);
        let pointers = self.machine.pointers().filter(in_use);
        let mut all: Vec<(BlockId, u64)> = pointers.map(|(place, block)| (block, place)).collect();
        all.sort_unstable();
        all.dedup_by_key(|(block, _)| *block);
        all
    }

    /// Whether memory is neither freed nor below a stack pointer.
    fn is_in_use(&self, place: u64) -> bool {
        const NEAR: u64 = 8 << 20;
        let holder = self.machine.blocks.containing(place);
        let freed = holder.and_then(|id| self.machine.blocks.get(id)).is_some_and(|b| !b.is_live());
        let below = self
            .machine
            .threads()
            .any(|thread| thread.stack.is_some_and(|stack| place < stack && stack - place < NEAR));
        !freed && !below
    }

    /// Evaluates the rules that are wanted, and keeps what holds.
    fn evaluate(&mut self, at: &At<'_>, wanted: impl Fn(&Armed) -> bool) {
        if self.is_library_alone(at.pc) {
            return;
        }
        for index in 0..self.armed.len() {
            let armed = &self.armed[index];
            if !armed.enabled || !wanted(armed) {
                continue;
            }
            let view = View {
                machine: &self.machine,
                width: at.width,
                releaser: at.releaser,
                written: at.written,
                pointed: at.pointed,
            };
            let (truth, found) = evaluate::witnesses(&armed.rule, &at.values, &view);
            if matches!(truth, Truth::NotKnown | Truth::TooLong) {
                self.undecided_once(index, truth);
            }
            for values in found {
                let hit = self.hit(index, at, &values);
                if !self.is_inherited(&self.armed[index].rule, &hit) {
                    let inner = self.library_frames(&hit.stack);
                    self.hits.add(hit, inner);
                }
            }
        }
    }

    fn undecided_once(&mut self, index: usize, truth: Truth) {
        let armed = &mut self.armed[index];
        armed.undecided += 1;
        armed.too_long += u32::from(truth == Truth::TooLong);
        if armed.too_long == MOST_TOO_LONG {
            armed.enabled = false;
            self.rescreen();
        }
    }
}
