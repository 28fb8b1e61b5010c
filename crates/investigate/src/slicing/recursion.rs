//! Why a stack is full: the calls that come again and again, and the arguments that each hands on to
//! the next as they are.

use super::asking::ResolvedMoment;
use super::execution::Execution;
use analyze::dependence::active::ActiveCall;
use analyze::dependence::query::Executed;
use analyze::slice::Wants;
use analyze::slice::ending::Asked;
use analyze::slice::recursion::{self, Recursion};
use base::StepCount;
use base::{Address, Place};
use serde::Serialize;

/// A recursion that filled the stack.
#[derive(Serialize)]
pub struct Endless {
    /// All calls that are active.
    pub active_calls: u64,
    /// How often the innermost call of a round is among them.
    pub rounds: u64,
    /// The calls of a round, innermost first.
    pub calls: Vec<Place>,
    /// Arguments that a round hands on to the next as they are.
    pub unchanged: Vec<String>,
    /// Arguments that it does not.
    pub changed: Vec<String>,
    #[serde(skip)]
    call: ActiveCall,
    #[serde(skip)]
    thread: u32,
    #[serde(skip)]
    pc: u64,
}

impl Endless {
    /// The recursion that filled the stack, if that is how the program ended.
    pub fn of(execution: &Execution) -> Option<Self> {
        execution.crash().filter(|report| crate::crash::stack_is_full(report))?;
        let (trace, thread) = (&execution.trace, execution.trace.last_thread()?);
        let found = recursion::find(trace, thread, StepCount(trace.len()))?;
        let pc = |call: &ActiveCall| trace.blocks.statics[call.instruction as usize].pc;
        let place = |call: &ActiveCall| execution.program.symbolise(Address(pc(call))).place();
        let (mut unchanged, mut changed) = (Vec::new(), Vec::new());
        for name in execution.parameters(&at(thread, &found.round[0])) {
            match execution.is_handed_on(thread, &found, &name) {
                Some(true) => unchanged.push(name),
                Some(false) => changed.push(name),
                None => {}
            }
        }
        Some(Self {
            active_calls: found.active,
            rounds: found.rounds,
            calls: found.round.iter().map(place).collect(),
            unchanged,
            changed,
            call: found.round[0],
            thread,
            pc: pc(&found.round[0]),
        })
    }

    /// What to ask: who decided to call once more?
    pub fn asked(&self) -> Asked {
        Asked {
            thread: self.thread,
            moment: self.call.moment,
            wants: Wants { control: Some(self.pc), ..Wants::default() },
            words: "the decision to call once more".into(),
            pc: Some(self.pc),
        }
    }
}

fn at(thread: u32, call: &ActiveCall) -> ResolvedMoment {
    let ActiveCall { instruction, moment, .. } = *call;
    let executed = Executed { moment, thread, instruction, addresses: Vec::new() };
    ResolvedMoment { thread, moment, executed: Some(executed) }
}

impl Execution {
    /// Whether a round hands a variable on to the next as it is; none if it cannot be had.
    fn is_handed_on(&self, thread: u32, found: &Recursion, name: &str) -> Option<bool> {
        let (last, before) = (&found.round[0], &found.before);
        let (mut here, mut there) = (Wants::default(), Wants::default());
        self.want(&at(thread, last), name, &mut here).ok()?;
        self.want(&at(thread, before), name, &mut there).ok()?;
        let values = [(last.moment, here), (before.moment, there)];
        Some(recursion::are_copies(&self.trace, thread, values, found.entered))
    }
}
