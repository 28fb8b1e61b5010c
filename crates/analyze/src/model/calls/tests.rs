//! The follower held against programs that really have a stack: random calls, returns, jumps and
//! signals, of which it hears only what a stream tells.

use super::*;
use proptest::prelude::*;

const REACH: u64 = 1 << 20;

fn called(slots: &[u64]) -> CallStack<u32> {
    let mut calls = CallStack::new(REACH);
    for (number, slot) in (0..).zip(slots) {
        calls.call(*slot, number, |frame| panic!("{frame:?} was left"));
    }
    calls
}

fn data(calls: &CallStack<u32>) -> Vec<u32> {
    calls.iter().map(|frame| frame.data).collect()
}

#[test]
fn frames_below_a_return_are_gone_however_they_ended() {
    let mut calls = called(&[0x1000, 0xf00, 0xe00]);
    let mut left = Vec::new();
    // longjmp to the outermost of the three, which calls again
    calls.call(0xf80, 3, |frame| left.push(frame.data));
    assert_eq!(left, [2, 1]);
    assert_eq!(data(&calls), [3, 0]);
    let own = calls.returns(0xf80, |frame| panic!("{frame:?} was left"));
    assert_eq!(own.map(|frame| frame.data), Some(3));
    assert_eq!(
        calls.returns(0x2000, |frame| assert_eq!(frame.data, 0)),
        None,
        "of a call not seen"
    );
    assert_eq!(calls.depth(), 0);
}

#[test]
fn another_stack_leaves_the_frames_alone() {
    let mut calls = called(&[0x1000]);
    calls.call(0x1000 + 2 * REACH, 1, |frame| panic!("{frame:?} was left"));
    assert_eq!(data(&calls), [1, 0]);
    let mut unlimited = CallStack::new(u64::MAX);
    unlimited.call(0x1000, 0, |_| ());
    let mut left = Vec::new();
    unlimited.call(0x1000 + 2 * REACH, 1, |frame| left.push(frame.data));
    assert_eq!(left, [0]);
}

/// What a program does next.
#[derive(Clone, Copy, Debug)]
enum Happening {
    /// Calls, with this much in the frame.
    Call(u64),
    Return,
    /// Jumps so many frames out; whether that is told.
    Jump(usize, bool),
    /// A signal comes, to be handled on another stack or on this one.
    Signal(bool),
    /// The handler is over.
    HandlerReturns,
}

fn step() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => (0u64..8).prop_map(|words| Happening::Call(8 * words)),
        4 => Just(Happening::Return),
        1 => (1usize..4, any::<bool>()).prop_map(|(out, told)| Happening::Jump(out, told)),
        1 => any::<bool>().prop_map(Happening::Signal),
        1 => Just(Happening::HandlerReturns),
    ]
}

/// A frame of the program: where its return address stands, and the stack pointer of its caller.
#[derive(Clone, Copy, Debug)]
struct Real {
    number: u32,
    slot: u64,
    handler: bool,
    stack: u64,
}

/// A program with a stack, and what is told of it.
struct Program {
    stack: u64,
    frames: Vec<Real>,
    calls: CallStack<u32>,
    next: u32,
    /// How many frames a jump has left over that the follower has not been told of, if it may still have
    /// others.
    behind: Option<usize>,
}

impl Program {
    fn new() -> Self {
        let calls = CallStack::new(u64::MAX);
        Self { stack: 0x10_0000, frames: Vec::new(), calls, next: 0, behind: None }
    }

    fn push(&mut self, slot: u64, handler: bool) {
        self.next += 1;
        self.frames.push(Real { number: self.next, slot, handler, stack: self.stack });
        self.stack = slot;
    }

    fn make(&mut self, step: Happening) {
        match step {
            Happening::Call(room) => {
                self.push(self.stack - room - 8, false);
                self.calls.call(self.stack, self.next, |_| ());
            }
            Happening::Return => {
                if let Some(frame) = self.frames.pop_if(|frame| !frame.handler) {
                    self.stack = frame.stack;
                    let own = self.calls.returns(frame.slot, |_| ());
                    assert_eq!(own.map(|own| own.data), Some(frame.number));
                    self.behind = self.behind.filter(|depth| self.frames.len() >= *depth);
                }
            }
            Happening::Jump(out, told) => {
                // A jump out of a handler is always told, as its frame may be on any stack.
                let depth = self.frames.len().saturating_sub(out).max(1);
                if depth >= self.frames.len() {
                    return;
                }
                let told = told
                    || self.behind.is_some()
                    || self.frames[depth..].iter().any(|it| it.handler);
                self.stack = self.frames[depth].stack;
                self.frames.truncate(depth);
                if told {
                    assert_eq!(self.calls.land(self.stack, |_| ()), Landed::Known);
                    self.behind = self.behind.filter(|known| depth > *known);
                } else {
                    self.behind = Some(depth);
                }
            }
            Happening::Signal(elsewhere) => {
                // A handler that comes while the follower is behind would hide what it must find out.
                if self.behind.is_some() || self.calls.in_handler() {
                    return;
                }
                let slot = if elsewhere { 0x20_0000 } else { self.stack - 0x400 };
                self.push(slot, true);
                self.calls.handler(slot, self.next);
            }
            Happening::HandlerReturns => {
                if let Some(at) = self.frames.iter().rposition(|frame| frame.handler) {
                    self.stack = self.frames[at].stack;
                    self.frames.truncate(at);
                    self.calls.handler_returns();
                    self.behind = self.behind.filter(|depth| self.frames.len() >= *depth);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn the_follower_has_the_frames_that_the_program_has(
        steps in prop::collection::vec(step(), 1..120)
    ) {
        let mut program = Program::new();
        for step in steps {
            program.make(step);
            let real: Vec<u32> = program.frames.iter().rev().map(|frame| frame.number).collect();
            let mut followed = data(&program.calls);
            if program.behind.is_some() {
                followed.retain(|number| real.contains(number));
            }
            prop_assert_eq!(followed, real);
        }
    }
}
