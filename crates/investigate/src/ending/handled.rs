//! A fault that the program handled itself, and then ended: runtimes do so, and programs that want to say
//! something before they go. What happened is the fault; the exit is only how it ended.

use super::Class;
use crate::crash::signal_name;
use crate::sight::Sight;
use crate::slicing::Execution;
use analyze::dependence::trace::Item;
use analyze::slice::ending::{Asked, Ended, ask};
use base::Address;
use base::StepCount;
use symbols::{Register, Scene};

/// Size of the context that the kernel leaves for a handler; what it says of the signal is behind that.
const CONTEXT: u64 = 0x130;
/// Where in a context the interrupted code's stack pointer and address are.
const SAVED_STACK: u64 = 0xa0;
const SAVED_PC: u64 = 0xa8;
/// Bytes of the longest instruction.
const LONGEST: usize = 15;
/// Instructions between a fault and the panic that a runtime makes of it.
const SOON: u64 = 100_000;
/// Addresses below this are a null pointer, or a member or element of one.
const NEAR_ZERO: u64 = 1 << 16;

/// A fault whose handler is active.
#[derive(Clone, Debug)]
pub struct Handled {
    /// Which signal.
    pub signal: i32,
    /// The address that it was about.
    pub address: u64,
    /// The instruction that faulted, and its bytes.
    pub pc: u64,
    code: Vec<u8>,
    stack: u64,
    /// The thread, and when its handler was entered, if that is not the innermost that is active.
    entered: Option<(u32, StepCount)>,
}

impl Handled {
    /// The innermost fault whose handler is active where a thread stands.
    pub fn of(scene: &Scene<'_>) -> Option<Self> {
        let frames = &scene.stack.frames;
        let interrupted = (1..frames.len()).find(|index| frames[*index].exact)?;
        let context = frames[interrupted - 1].registers.rsp().0;
        let word = |at: u64| scene.memory.word(Address(at));
        let about = context.wrapping_add(CONTEXT);
        let signal = word(about)? as u32 as i32;
        let raised = word(about.wrapping_add(8))? as u32 as i32 > 0;
        let faults = ["SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP"];
        if !raised || !faults.contains(&signal_name(signal).as_str()) {
            return None;
        }
        let pc = frames[interrupted].pc.0;
        let (code, stack) = (code_at(scene, pc), frames[interrupted].registers.rsp().0);
        let address = word(about.wrapping_add(16))?;
        Some(Self { signal, address, pc, code, stack, entered: None })
    }

    /// The fault that a runtime made a panic of: the handler has returned to where the panic begins.
    pub fn before_panic(
        execution: &Execution,
        sight: &mut Sight<'_>,
        (thread, panic): (u32, StepCount),
    ) -> Option<Self> {
        let moment = handler_before(execution, thread, panic)?;
        let standing = sight.at(execution.trace.position(moment)?).ok()??;
        let fault = sight.look(&standing, Self::entering).ok()??;
        Some(Self { entered: Some((thread, moment)), ..fault })
    }

    /// The fault of which a handler has just been entered: the kernel hands it over in registers.
    fn entering(scene: &Scene<'_>) -> Option<Self> {
        let registers = &scene.stack.frames.first()?.registers;
        let register = |name| registers.get(Register::named(name)?);
        let (about, context) = (register("rsi")?, register("rdx")?);
        let word = |at: u64| scene.memory.word(Address(at));
        let signal = word(about)? as u32 as i32;
        let pc = word(context.wrapping_add(SAVED_PC))?;
        let stack = word(context.wrapping_add(SAVED_STACK))?;
        let code = code_at(scene, pc);
        let address = word(about.wrapping_add(16))?;
        Some(Self { signal, address, pc, code, stack, entered: None })
    }

    /// What kind of fault it was.
    pub fn class(&self) -> Class {
        match signal_name(self.signal).as_str() {
            "SIGFPE" => Class::Division,
            "SIGILL" | "SIGTRAP" => Class::IllegalInstruction,
            _ if self.code.is_empty() => Class::WildJump,
            _ if self.address < NEAR_ZERO => Class::NullPointer,
            _ => Class::WildPointer,
        }
    }

    /// What to ask about it: thread, moment and questions.
    pub fn asked(&self, execution: &Execution) -> Option<(u32, StepCount, Vec<Asked>)> {
        let innermost = || {
            let thread = execution.trace.last_thread()?;
            Some((thread, entered(execution, thread)?))
        };
        let (thread, moment) = self.entered.or_else(innermost)?;
        let ended = Ended::Fault {
            pc: self.pc,
            code: self.code.clone(),
            stack: self.stack,
            pointers: Vec::new(),
            before: None,
        };
        let mut asked = ask(&execution.trace, &ended);
        for asked in &mut asked {
            (asked.moment, asked.wants.interrupted) = (moment, true);
        }
        Some((thread, moment, asked))
    }
}

/// When a thread entered a handler last before a moment, if the panic followed from that: soon.
fn handler_before(execution: &Execution, thread: u32, before: StepCount) -> Option<StepCount> {
    let mut back = execution.trace.backward_from(before);
    while let Some((when, item)) = back.previous() {
        if when.moment < before && when.thread == thread && matches!(item, Item::Handler) {
            return (before.0 - when.moment.0 < SOON).then_some(when.moment);
        }
    }
    None
}

fn code_at(scene: &Scene<'_>, pc: u64) -> Vec<u8> {
    let mut code = vec![0; LONGEST];
    while !code.is_empty() && !scene.memory.read(Address(pc), &mut code) {
        code.pop();
    }
    code
}

/// When the innermost handler that is active was entered.
fn entered(execution: &Execution, thread: u32) -> Option<StepCount> {
    let (mut over, mut back) = (0u64, execution.trace.backward());
    while let Some((when, item)) = back.previous() {
        match item {
            _ if when.thread != thread => {}
            Item::Resumed => over += 1,
            Item::Handler if over == 0 => return Some(when.moment),
            Item::Handler => over -= 1,
            _ => {}
        }
    }
    None
}
