//! What a detector finds that follows only the end of a run is what one finds that follows all of it: on
//! generated programs, from any moment on.

use analyze::rules::detector::Detector;
use analyze::rules::hit::{Hit, Subject};
use analyze::rules::machine::bitwise::Constants;
use analyze::rules::machine::code;
use analyze::rules::machine::{Access, Start};
use analyze::rules::needs::is_local;
use analyze::rules::shipped;
use base::allocator::Allocators;
use iced_x86::InstructionInfoFactory;
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};

const MALLOC: u64 = 0x1000;
const FREE: u64 = 0x2000;
const GLOBALS: u64 = 0x10_0000;
const HEAP: u64 = 0x5555_0000_0000;
const STACK: u64 = 0x7fff_0000_0000;
/// Every step has code of its own, this far apart, so that findings can be told apart.
const STEP: u64 = 64;
/// Sizes and distances are multiples of that.
const WORD: u64 = 8;

/// A step of a program over the registers r8 to r11, four variables, and the heap.
#[derive(Clone, Copy, Debug)]
enum Step {
    Malloc(u8, u64),
    Free(u8),
    Number(u8, i32),
    Move(u8, u8),
    Add(u8, i8),
    Sum(u8, u8),
    Difference(u8, u8),
    Choose(u8, u8, bool),
    Keep(u8, u8),
    Fetch(u8, u8),
    Read(u8, u8, i8),
    Write(u8, u8, i8),
}

fn step() -> impl Strategy<Value = Step> {
    let register = || 0u8..4;
    let word = |range: std::ops::Range<i8>| range.prop_map(|words| words * WORD as i8);
    prop_oneof![
        4 => (register(), 1u64..5).prop_map(|(to, words)| Step::Malloc(to, words * WORD)),
        2 => register().prop_map(Step::Free),
        1 => (register(), 0..4).prop_map(|(to, number)| Step::Number(to, number * WORD as i32)),
        2 => (register(), register()).prop_map(|(to, from)| Step::Move(to, from)),
        3 => (register(), word(-2..6)).prop_map(|(to, by)| Step::Add(to, by)),
        1 => (register(), register()).prop_map(|(to, from)| Step::Sum(to, from)),
        1 => (register(), register()).prop_map(|(to, from)| Step::Difference(to, from)),
        1 => (register(), register(), any::<bool>()).prop_map(|(to, from, yes)| Step::Choose(to, from, yes)),
        3 => (register(), register()).prop_map(|(to, from)| Step::Keep(to, from)),
        3 => (register(), register()).prop_map(|(to, from)| Step::Fetch(to, from)),
        4 => (register(), register(), word(-1..5)).prop_map(|(to, at, by)| Step::Read(to, at, by)),
        4 => (register(), register(), word(-1..5)).prop_map(|(at, from, by)| Step::Write(at, from, by)),
    ]
}

/// What detectors are told.
enum Event {
    Enter { function: u64, back: u64, arguments: [u64; 6] },
    Leave { function: u64, value: u64 },
    Instruction { pc: u64, bytes: Vec<u8>, accesses: Vec<Access> },
}

/// Executes programs, and writes down what happens.
#[derive(Default)]
struct Computer {
    registers: [u64; 4],
    memory: HashMap<u64, u64>,
    /// Blocks that were freed, by size: the next of that size is there.
    spare: HashMap<u64, Vec<u64>>,
    sizes: HashMap<u64, u64>,
    used: u64,
    events: Vec<Event>,
}

fn between(mode: u8, register: u8, other: u8) -> u8 {
    mode << 6 | register << 3 | other
}

impl Computer {
    fn run(&mut self, number: u64, step: Step) {
        let pc = 0x40_0000 + number * STEP;
        match step {
            Step::Malloc(to, size) => {
                let value = self.allocate(size);
                self.call(pc, MALLOC, size);
                self.events.push(Event::Leave { function: MALLOC, value });
                self.registers[to as usize] = value;
                self.execute(pc + 16, vec![0x49, 0x89, between(3, 0, to)], None);
            }
            Step::Free(which) => {
                let value = self.registers[which as usize];
                self.execute(pc, vec![0x4c, 0x89, between(3, which, 7)], None);
                self.call(pc + 16, FREE, value);
                self.events.push(Event::Leave { function: FREE, value: 0 });
                let size = self.sizes.get(&value).copied();
                size.into_iter().for_each(|size| self.spare.entry(size).or_default().push(value));
            }
            Step::Number(to, number) => {
                self.registers[to as usize] = number as u64;
                let bytes = [&[0x49, 0xc7, between(3, 0, to)][..], &number.to_le_bytes()].concat();
                self.execute(pc, bytes, None);
            }
            Step::Move(to, from) => {
                self.registers[to as usize] = self.registers[from as usize];
                self.execute(pc, vec![0x4d, 0x89, between(3, from, to)], None);
            }
            Step::Add(to, by) => {
                let value = &mut self.registers[to as usize];
                *value = value.wrapping_add_signed(by.into());
                self.execute(pc, vec![0x49, 0x83, between(3, 0, to), by as u8], None);
            }
            Step::Sum(to, from) => {
                let value = self.registers[from as usize];
                self.registers[to as usize] = self.registers[to as usize].wrapping_add(value);
                self.execute(pc, vec![0x4d, 0x01, between(3, from, to)], None);
            }
            Step::Difference(to, from) => {
                let value = self.registers[from as usize];
                self.registers[to as usize] = self.registers[to as usize].wrapping_sub(value);
                self.execute(pc, vec![0x4d, 0x29, between(3, from, to)], None);
            }
            Step::Choose(to, from, yes) => {
                if yes {
                    self.registers[to as usize] = self.registers[from as usize];
                }
                self.execute(pc, vec![0x4d, 0x0f, 0x45, between(3, to, from)], None);
            }
            Step::Keep(variable, from) => {
                let address = GLOBALS + WORD * u64::from(variable);
                self.memory.insert(address, self.registers[from as usize]);
                self.execute(pc, absolute(0x89, from, address), Some((address, true)));
            }
            Step::Fetch(to, variable) => {
                let address = GLOBALS + WORD * u64::from(variable);
                self.registers[to as usize] = self.word(address);
                self.execute(pc, absolute(0x8b, to, address), Some((address, false)));
            }
            Step::Read(to, at, by) => {
                let address = self.registers[at as usize].wrapping_add_signed(by.into());
                self.registers[to as usize] = self.word(address);
                let bytes = vec![0x4d, 0x8b, between(1, to, at), by as u8];
                self.execute(pc, bytes, Some((address, false)));
            }
            Step::Write(at, from, by) => {
                let address = self.registers[at as usize].wrapping_add_signed(by.into());
                self.memory.insert(address, self.registers[from as usize]);
                let bytes = vec![0x4d, 0x89, between(1, from, at), by as u8];
                self.execute(pc, bytes, Some((address, true)));
            }
        }
    }

    fn word(&self, address: u64) -> u64 {
        self.memory.get(&address).copied().unwrap_or_default()
    }

    fn allocate(&mut self, size: u64) -> u64 {
        let spare = self.spare.get_mut(&size).and_then(Vec::pop);
        let address = spare.unwrap_or_else(|| {
            self.used += size + 16;
            HEAP + self.used - size
        });
        self.sizes.insert(address, size);
        address
    }

    fn call(&mut self, pc: u64, function: u64, argument: u64) {
        let arguments = [argument, 0, 0, 0, 0, 0];
        self.events.push(Event::Enter { function, back: pc + 1, arguments });
    }

    fn execute(&mut self, pc: u64, bytes: Vec<u8>, access: Option<(u64, bool)>) {
        let access = access.map(|(address, write)| Access { address, size: WORD as u32, write });
        let accesses = access.into_iter().collect();
        self.events.push(Event::Instruction { pc, bytes, accesses });
    }
}

/// Moves between a register and a variable.
fn absolute(opcode: u8, register: u8, address: u64) -> Vec<u8> {
    let head = [0x4c, opcode, between(0, register, 4), 0x25];
    [&head[..], &(address as u32).to_le_bytes()].concat()
}

/// A detector, and what it needs to be told of instructions.
struct Told {
    detector: Detector,
    factory: InstructionInfoFactory,
}

impl Told {
    fn new() -> Self {
        let rules = shipped::rules().into_iter().filter(is_local).collect();
        let mut detector = Detector::new(rules, Allocators::default());
        detector.add_function(MALLOC, "malloc");
        detector.add_function(FREE, "free");
        Self { detector, factory: InstructionInfoFactory::new() }
    }

    fn tell(&mut self, event: &Event) {
        match event {
            Event::Enter { function, back, arguments } => {
                self.detector.enter(*function, *back, STACK, *arguments);
            }
            Event::Leave { function, value } => self.detector.leave(*function, STACK, *value),
            Event::Instruction { pc, bytes, accesses } => {
                let place = self.detector.machine.chains.place(*pc);
                let constants = &mut Constants::default();
                let code = code::compile(*pc, bytes, place, constants, &mut self.factory);
                self.detector.instruction(&code, accesses);
            }
        }
    }

    /// Rules and places. A pointer that is freed and older than the window is known by its address alone,
    /// so which of two blocks it is one of may be told otherwise, but not that it is wrong.
    fn found(&self) -> BTreeSet<(String, u64)> {
        let place = |hit: &Hit| hit.stack.first().copied().unwrap_or(0);
        let rule = |hit: &Hit| match hit.subject {
            Subject::Release { .. } => "wrong free".to_owned(),
            _ => hit.rule.clone(),
        };
        self.detector.hits().iter().map(|hit| (rule(hit), place(hit))).collect()
    }
}

/// What is found in all of a run, and in what comes behind a moment.
fn found(steps: &[Step], begin: usize) -> [BTreeSet<(String, u64)>; 2] {
    let mut computer = Computer::default();
    for (number, step) in (0..).zip(steps) {
        computer.run(number, *step);
    }
    let begin = begin.min(computer.events.len());
    let (mut all, mut end) = (Told::new(), Told::new());
    computer.events.iter().for_each(|event| all.tell(event));
    end.detector.only_allocations();
    let (before, behind) = computer.events.split_at(begin);
    before.iter().filter(|event| !matches!(event, Event::Instruction { .. })).for_each(|event| {
        end.tell(event);
    });
    end.detector.begin_window(&Start::default(), Vec::new());
    behind.iter().for_each(|event| end.tell(event));
    [all.found(), end.found()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn a_window_finds_nothing_that_the_whole_run_does_not_have(
        steps in prop::collection::vec(step(), 1..60),
        begin in 0usize..100,
    ) {
        let [all, mut end] = found(&steps, begin);
        // Which block a wrong pointer frees is known only to who has followed it: later they may differ.
        let wrong = all.iter().filter(|(rule, _)| rule == "wrong free").map(|(_, place)| *place).min();
        end.retain(|(_, place)| wrong.is_none_or(|wrong| *place <= wrong));
        // Nor is it known what a pointer below all blocks was made from; it is wrong in any case.
        end.retain(|(rule, place)| rule != "null-pointer" || all.iter().all(|(_, known)| known != place));
        prop_assert!(end.is_subset(&all), "{:?}", end.difference(&all).collect::<Vec<_>>());
    }
}

/// Windows that never find anything would be right, too.
#[test]
fn windows_find_most_of_what_is_made_in_them() {
    let steps = [
        Step::Malloc(0, 16),
        Step::Keep(1, 0),
        Step::Fetch(2, 1),
        Step::Add(2, 16),
        Step::Write(2, 3, 0),
        Step::Free(0),
        Step::Read(3, 0, 0),
        Step::Free(0),
    ];
    let rules = |found: &BTreeSet<(String, u64)>| -> Vec<String> {
        found.iter().map(|(rule, _)| rule.clone()).collect()
    };
    let everything = ["dangling-pointer", "heap-overflow", "wrong free"];
    let [all, end] = found(&steps, 0);
    assert_eq!(rules(&all), everything);
    assert_eq!(rules(&end), everything);
    // Behind the allocation the pointer is unknown; what is freed is known by its address.
    let [_, end] = found(&steps, 3);
    assert_eq!(rules(&end), ["wrong free"]);
}
