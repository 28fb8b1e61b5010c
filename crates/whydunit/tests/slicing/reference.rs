//! A slow and obvious slicer: one pass forwards that notes for every byte and register part by
//! which definition it was made, a stack of open regions for control, then a search in the graph
//! that this gives. It shares with the tool what instructions mean and the graph of control flow,
//! and nothing else: not the reading of records, not post-dominators, not going backwards. Frames
//! come and go with the stack pointer, which it follows by itself.
//!
//! Parts: `flows` (definitions), `control` (frames and regions), `stack` (the stack pointer),
//! `search` (slices).

mod control;
mod flows;
mod search;
mod stack;

use analyze::dependence::control::Control;
use analyze::semantics::{Form, Meaning, Parts};
use analyze::slice::Kind;
use control::Frame;
use events::decode::Record;
use events::{Decoder, Event};
use iced_x86::Instruction;
use stack::Machine;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::rc::Rc;

/// A definition: by which execution, from which definitions.
struct Definition {
    by: usize,
    from: Vec<(usize, Kind)>,
}

/// An execution.
struct Execution {
    pc: u64,
    thread: u32,
    /// The execution that decided about it, and the definitions that its own decision used.
    decided_by: Option<usize>,
    decision: Vec<(usize, Kind)>,
    /// Whether it counts as an instruction: system calls do not.
    instruction: bool,
}

/// A value that is asked about, as if it were made anew at a moment.
#[derive(Clone, Debug)]
pub struct Seed {
    pub thread: u32,
    pub moment: u64,
    pub parts: Parts,
    pub memory: Vec<(u64, u64)>,
}

/// How to look at a stream.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether saved registers are passed by.
    pub bypass: bool,
    pub prune_parts: Parts,
    pub prune_memory: Vec<(u64, u64)>,
    /// Memory that nobody can write to.
    pub constants: Vec<(u64, u64)>,
    pub seed: Option<Seed>,
}

/// What may be in a slice.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// All threads if none are given.
    pub threads: Vec<u32>,
    /// Edges from the question; any number if none is given.
    pub depth: Option<u32>,
    pub within: Option<BTreeSet<u64>>,
}

/// Registers pushed: who, in which frame, which register, the definitions of its parts.
struct Saved {
    frame: usize,
    register: u8,
    parts: Vec<(u8, Option<usize>)>,
}

struct Thread {
    parts: HashMap<u8, usize>,
    frames: Vec<Frame>,
    /// Its last execution.
    last: usize,
}

/// Everything that happened.
pub struct Reference<'a> {
    control: &'a Control,
    after: HashMap<u32, Option<u32>>,
    code: HashMap<u64, Rc<Code>>,
    machine: Machine,
    definitions: Vec<Definition>,
    /// The definitions of each execution.
    made_by: Vec<Vec<usize>>,
    executions: Vec<Execution>,
    bytes: HashMap<u64, usize>,
    saved: HashMap<usize, Saved>,
    threads: HashMap<u32, Thread>,
    thread: u32,
    /// The system calls of each thread that are still to come.
    calls: HashMap<u32, VecDeque<Call>>,
    frames: usize,
    options: Options,
    /// The definitions of the seed, once it has been sown.
    sown: BTreeSet<usize>,
    /// Instruction number of each execution.
    pub moments: Vec<u64>,
}

/// A system call, and what it is made from: its answer, what it writes.
#[derive(Clone, Default)]
struct Call {
    number: u64,
    answer: i64,
    read: Vec<(u64, u64)>,
    written: Option<Vec<(u64, u64)>>,
    made_from: [Vec<(usize, Kind)>; 2],
}

/// An instruction of the program.
struct Code {
    instruction: Instruction,
    meaning: Meaning,
}

/// Whether it writes, address, bytes.
type Access = (bool, u64, u64);

const RT_SIGRETURN: u64 = 15;

impl<'a> Reference<'a> {
    /// Looks at a whole stream.
    pub fn of(stream: &[Vec<u8>], control: &'a Control, options: Options) -> Self {
        let mut reference = Self {
            control,
            after: HashMap::new(),
            code: code(stream),
            machine: Machine::default(),
            definitions: Vec::new(),
            made_by: Vec::new(),
            executions: Vec::new(),
            bytes: HashMap::new(),
            saved: HashMap::new(),
            threads: HashMap::new(),
            thread: 0,
            calls: calls(stream),
            frames: 0,
            options,
            sown: BTreeSet::new(),
            moments: Vec::new(),
        };
        let mut decoder = Decoder::default();
        let mut open: Option<(u64, bool, Vec<Access>)> = None;
        let mut instructions = 0;
        for chunk in stream {
            let mut each = |event: Event| match event {
                Event::Access { address, size, write } => {
                    if let Some((_, _, accesses)) = &mut open {
                        accesses.push((write, address, size.into()));
                    }
                }
                other => {
                    if let Some((pc, completed, accesses)) = open.take() {
                        reference.executed(pc, completed, &accesses, &mut instructions);
                    }
                    match other {
                        Event::Instruction { pc, .. } => open = Some((pc, true, Vec::new())),
                        Event::Interrupted { pc } => open = Some((pc, false, Vec::new())),
                        Event::Thread(thread) => reference.thread = thread,
                        Event::Handler { stack, frame, .. } => reference.handle(stack, frame),
                        Event::Syscall { number, arguments, answer } => {
                            reference.system_call(number, &arguments, answer);
                        }
                        _ => {}
                    }
                }
            };
            decoder.events(chunk, &mut each).expect("well formed");
        }
        if let Some((pc, completed, accesses)) = open.take() {
            reference.executed(pc, completed, &accesses, &mut instructions);
        }
        reference.made_by.resize(reference.executions.len(), Vec::new());
        reference
    }

    fn is_pruned(&self, byte: u64) -> bool {
        let pruned = &self.options.prune_memory;
        pruned.iter().any(|(from, count)| (*from..from + count).contains(&byte))
    }

    /// The address of an execution, by instruction number.
    pub fn pc(&self, moment: u64) -> u64 {
        let at = (0..self.moments.len())
            .find(|at| self.executions[*at].instruction && self.moments[*at] == moment);
        at.map_or(0, |at| self.executions[at].pc)
    }

    fn form(&self, by: usize) -> Form {
        self.code[&self.executions[by].pc].meaning.form
    }

    fn thread(&mut self) -> &mut Thread {
        let frames = &mut self.frames;
        self.threads.entry(self.thread).or_insert_with(|| {
            *frames += 1;
            Thread { parts: HashMap::new(), frames: vec![Frame::root(*frames)], last: usize::MAX }
        })
    }

    fn top(&mut self) -> &mut Frame {
        self.thread().frames.last_mut().expect("never empty")
    }

    fn define(&mut self, by: usize, from: Vec<(usize, Kind)>) -> usize {
        self.definitions.push(Definition { by, from });
        let made = self.definitions.len() - 1;
        self.made_by.resize(self.made_by.len().max(by + 1), Vec::new());
        self.made_by[by].push(made);
        made
    }

    fn of_parts(&mut self, parts: Parts, kind: Kind) -> Vec<(usize, Kind)> {
        let parts = parts.without(&self.options.prune_parts);
        let thread = self.thread();
        parts.iter().filter_map(|part| Some((*thread.parts.get(&part)?, kind))).collect()
    }

    fn of_bytes(&self, address: u64, bytes: u64) -> Vec<(usize, Kind)> {
        let bytes = (address..address + bytes).filter(|byte| !self.is_pruned(*byte));
        bytes.filter_map(|byte| Some((*self.bytes.get(&byte)?, Kind::Value))).collect()
    }

    fn executed(&mut self, pc: u64, completed: bool, accesses: &[Access], count: &mut u64) {
        let code = self.code[&pc].clone();
        let meaning = &code.meaning;
        self.sow(*count);
        if let Some(stack) = self.machine.stack(self.thread) {
            self.settle(stack);
        }
        let by = self.begin(pc, *count, completed);
        self.thread().last = by;
        *count += u64::from(completed);
        if let Some(uses) = &meaning.decides {
            self.executions[by].decision = self.used(meaning, uses, accesses);
        }
        if meaning.form == Form::Syscall {
            self.give();
        }
        if let Some(operation) = meaning.repeats {
            self.string(by, operation, completed, accesses);
        } else if completed && !self.restore(by, meaning, accesses) {
            self.flows(by, meaning, accesses);
        }
        if completed {
            self.machine.execute(self.thread, &code.instruction, accesses);
            self.go(by, pc, meaning.form);
        }
    }

    /// Makes what is asked about anew, when its moment has come.
    fn sow(&mut self, moment: u64) {
        let Some(seed) = self.options.seed.clone().filter(|seed| seed.moment == moment) else {
            return;
        };
        if !self.sown.is_empty() {
            return;
        }
        let by = self.executions.len();
        let (pc, thread, decision) = (0, seed.thread, Vec::new());
        let execution = Execution { pc, thread, decided_by: None, decision, instruction: false };
        self.executions.push(execution);
        self.moments.push(moment);
        let made = self.define(by, Vec::new());
        self.sown.insert(made);
        let running = std::mem::replace(&mut self.thread, seed.thread);
        for part in seed.parts.without(&self.options.prune_parts).iter() {
            self.thread().parts.insert(part, made);
        }
        self.thread = running;
        for byte in seed.memory.iter().flat_map(|(from, count)| *from..from + count) {
            if !self.is_pruned(byte) {
                self.bytes.insert(byte, made);
            }
        }
    }

    /// What the system call that is made now is given.
    fn give(&mut self) {
        let next = self.calls.get(&self.thread).and_then(VecDeque::front).cloned();
        // The last call of a thread does not return.
        let Some(call) = next else { return };
        let (values, places) = taken(call.number, call.answer);
        let mut answers = self.of_parts(values, Kind::Value);
        let mut writes = self.of_parts(values, Kind::Address);
        for made_from in [&mut answers, &mut writes] {
            made_from.extend(self.of_parts(places, Kind::Address));
            for (address, bytes) in &call.read {
                made_from.extend(self.of_bytes(*address, *bytes));
            }
        }
        let own = self.calls.get_mut(&self.thread).and_then(VecDeque::front_mut);
        own.expect("just looked at").made_from = [answers, writes];
    }

    fn system_call(&mut self, number: u64, arguments: &[u64; 6], answer: i64) {
        // The call belongs to the thread's last instruction, which is in the slice with it.
        let by = self.thread().last;
        let form = self.form(by);
        assert_eq!(form, Form::Syscall, "a system call follows its instruction");
        let call = self.calls.get_mut(&self.thread).and_then(VecDeque::pop_front);
        let call = call.expect("seen before");
        assert_eq!((call.number, call.answer), (number, answer));
        let [answers, writes] = call.made_from;
        let made = self.define(by, answers);
        for part in Parts::general(0, 0, 8).iter() {
            self.thread().parts.insert(part, made);
        }
        if number == RT_SIGRETURN {
            self.resume();
        }
        let mut written = call.written.unwrap_or_else(|| {
            analyze::dependence::system_calls::written(number, arguments, answer)
        });
        written.extend(mapped(number, arguments, answer));
        let made = self.define(by, writes);
        for (address, bytes) in written {
            if bytes < 1 << 16 {
                self.bytes.extend((address..address + bytes).map(|byte| (byte, made)));
            }
        }
    }
}

/// Registers that a system call's answer is made from, and those that say where things are. By hand, for
/// the calls that the programs of these tests make.
fn taken(number: u64, answer: i64) -> (Parts, Parts) {
    let [a, b, c, d, e, f] = [7, 6, 2, 10, 8, 9].map(|number| Parts::general(number, 0, 8));
    let none = Parts::NONE;
    match number {
        0 | 1 => (c, a | b),                               // read, write
        2 => (b | c, a),                                   // open
        3 => (none, a),                                    // close
        8 => (b | c, a),                                   // lseek
        9 if answer >= 0 => (none, a | b | c | d | e | f), // mmap
        13 | 14 => (a | d, b | c),                         // rt_sigaction, rt_sigprocmask
        15 | 39 | 186 => (none, none),                     // rt_sigreturn, getpid, gettid
        22 => (none, a),                                   // pipe
        24 => (none, none),                                // sched_yield
        56 => (a, b | c | d | e),                          // clone
        60 | 231 => (a, none),                             // exit, exit_group
        62 | 200 => (a | b, none),                         // kill, tkill
        131 => (none, a | b),                              // sigaltstack
        158 => (a | b, none),                              // arch_prctl
        202 => (b | c | f, a | d | e),                     // futex
        234 => (a | b | c, none),                          // tgkill
        318 => (b | c, a),                                 // getrandom
        other => panic!("the programs of these tests do not call {other}"),
    }
}

/// What `mmap` has mapped.
fn mapped(number: u64, arguments: &[u64; 6], answer: i64) -> Option<(u64, u64)> {
    (number == 9 && answer >= 0).then_some((answer as u64, arguments[1]))
}

/// The system calls of each thread, in order.
fn calls(stream: &[Vec<u8>]) -> HashMap<u32, VecDeque<Call>> {
    let mut decoder = Decoder::default();
    let mut found: HashMap<u32, VecDeque<Call>> = HashMap::new();
    let (mut thread, mut next) = (0, Call::default());
    for chunk in stream {
        let each = |event: Event| match event {
            Event::Thread(number) => thread = number,
            Event::Kernel { address, length, write } => {
                let written = next.written.get_or_insert_default();
                let list = if write { written } else { &mut next.read };
                list.push((address, length));
            }
            Event::Syscall { number, answer, .. } => {
                let call = Call { number, answer, ..std::mem::take(&mut next) };
                found.entry(thread).or_default().push_back(call);
            }
            _ => {}
        };
        decoder.events(chunk, each).expect("well formed");
    }
    found
}

/// Every instruction of the stream.
fn code(stream: &[Vec<u8>]) -> HashMap<u64, Rc<Code>> {
    let mut decoder = Decoder::default();
    let mut factory = iced_x86::InstructionInfoFactory::new();
    let mut found = HashMap::new();
    for chunk in stream {
        let each = |record: Record<'_, '_>| {
            let Record::Path(path) = record else { return };
            for instruction in &path.shape.instructions {
                found.entry(instruction.pc).or_insert_with(|| {
                    let (code, pc) = (instruction.code(), instruction.pc);
                    let instruction = iced_x86::Decoder::with_ip(64, code, pc, 0).decode();
                    let meaning = Meaning::of(&instruction, &mut factory);
                    Rc::new(Code { instruction, meaning })
                });
            }
        };
        decoder.records(chunk, each).expect("well formed");
    }
    found
}
