//! What to ask about the end of a program: the value that was wrong when it ended.

use super::question::{Follow, Question, Wants};
use crate::dependence::query::{Executed, Nth};
use crate::dependence::{Moment, Trace};
use crate::semantics::{Meaning, Parts, Side};
use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, Mnemonic, OpKind};

/// How a program ended, as plain data.
#[derive(Clone, Debug)]
pub enum Ended {
    /// An instruction faulted.
    Fault {
        /// Its address.
        pc: u64,
        /// Its bytes; empty if there is no code.
        code: Vec<u8>,
        /// The stack pointer.
        stack: u64,
    },
    /// It gave up: `abort`, an assertion, a check of the C library.
    GaveUp {
        /// The active calls, innermost first, up to the first of the program's own: function, and
        /// where it would have gone on.
        calls: Vec<(Option<String>, u64)>,
    },
    /// It ended by itself.
    Exit,
    /// It was ended by somebody else.
    Stopped,
}

/// What is asked about if no value is.
pub const THE_WAY: &str = "the way here";

/// A question about an end.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The thread.
    pub thread: u32,
    /// The moment.
    pub moment: Moment,
    /// What is wanted.
    pub wants: Wants,
    /// In words: what the wanted value was to the program.
    pub words: String,
    /// The instruction that the question is about, if it is in the trace.
    pub pc: Option<u64>,
}

impl Asked {
    /// The question, following what is asked for.
    #[must_use]
    pub fn question(&self, follow: Follow) -> Question<'_> {
        Question::new(self.thread, self.moment, self.wants.clone(), follow)
    }
}

/// What to ask about an end, the best question first; none if the trace holds nothing.
#[must_use]
pub fn ask(trace: &Trace, ended: &Ended) -> Vec<Asked> {
    let last = trace.last_executed(trace.last_thread(), Moment(trace.len()));
    let Some(last) = last else { return Vec::new() };
    match ended {
        Ended::Fault { pc, code, stack } if !code.is_empty() => {
            vec![fault(trace, &last, *pc, code, *stack)]
        }
        Ended::Fault { .. } => vec![jumped(trace, &last)],
        Ended::GaveUp { calls } => {
            let asked = gave_up(trace, &last, calls);
            if asked.is_empty() { vec![stopped(trace, &last)] } else { asked }
        }
        Ended::Exit => vec![exit(trace, &last)],
        Ended::Stopped => vec![stopped(trace, &last)],
    }
}

fn exit(trace: &Trace, last: &Executed) -> Asked {
    Asked {
        thread: last.thread,
        moment: Moment(trace.len()),
        wants: Wants { parts: Parts::general(7, 0, 8), ..Wants::default() },
        words: "the exit code".into(),
        pc: None,
    }
}

/// No value was wrong as far as anybody can tell: how did it get there?
fn stopped(trace: &Trace, last: &Executed) -> Asked {
    let pc = trace.blocks.statics[last.instruction as usize].pc;
    Asked {
        thread: last.thread,
        moment: Moment(trace.len()),
        wants: Wants { control: Some(pc), ..Wants::default() },
        words: THE_WAY.into(),
        pc: Some(pc),
    }
}

/// An instruction faulted: the registers that formed its address, or a divisor.
fn fault(trace: &Trace, last: &Executed, pc: u64, code: &[u8], stack: u64) -> Asked {
    let instruction = Decoder::with_ip(64, code, pc, DecoderOptions::NONE).decode();
    let meaning = Meaning::of(&instruction, &mut InstructionInfoFactory::new());
    let divides = matches!(instruction.mnemonic(), Mnemonic::Div | Mnemonic::Idiv);
    let (mut wants, mut words) = (Wants::default(), "a value that the instruction used");
    if instruction.mnemonic() == Mnemonic::Ret {
        wants.memory.push((stack, 8));
        words = "the address to return to";
    } else if divides && instruction.op0_kind() == OpKind::Register {
        wants.parts = Parts::of(instruction.op0_register());
        words = "the divisor";
    } else if !meaning.addresses().is_empty() && !divides {
        wants.parts = meaning.addresses();
        words = "the pointer";
    } else if let Some(decides) = &meaning.decides {
        wants.parts = decides.values;
        words = "the address to go to";
    } else {
        let executed = Executed { addresses: Vec::new(), ..last.clone() };
        wants.parts = trace.used(&executed).0 | meaning.addresses();
    }
    let (thread, moment) = (last.thread, Moment(trace.len()));
    Asked { thread, moment, wants, words: words.into(), pc: Some(pc) }
}

/// Control went where there is no code: where did the last instruction have that from?
fn jumped(trace: &Trace, last: &Executed) -> Asked {
    let known = &trace.blocks.statics[last.instruction as usize];
    let mut wants = Wants::default();
    if let Some(decides) = &known.meaning.decides {
        wants.parts = decides.values;
        for read in &decides.reads {
            if let Side::Memory(slot) = read.side
                && let Some(Some(address)) = last.addresses.get(usize::from(slot))
            {
                wants.memory.push((address + u64::from(read.from), read.bytes.into()));
            }
        }
    }
    Asked {
        thread: last.thread,
        moment: last.moment,
        wants,
        words: "the address that it went to".into(),
        pc: Some(known.pc),
    }
}

/// Functions whose part is only to end the program, without leading underscores.
const ENDERS: [&str; 9] = [
    "abort",
    "raise",
    "gsignal",
    "pthread_kill",
    "assert_fail",
    "stack_chk_fail",
    "fortify_fail",
    "libc_message",
    "malloc_printerr",
];
/// Functions that are given the pointer that is wrong.
const GIVEN_POINTERS: [&str; 6] =
    ["free", "libc_free", "realloc", "libc_realloc", "cfree", "operator delete"];

/// The program gave up in a call: what decided that, in the program or in the library that
/// noticed something; and what was the library given?
fn gave_up(trace: &Trace, last: &Executed, calls: &[(Option<String>, u64)]) -> Vec<Asked> {
    let named = |name: &Option<String>, list: &[&str]| {
        let name = name.as_deref().unwrap_or("").trim_start_matches("__GI_");
        let name = name.trim_start_matches('_');
        list.iter().any(|known| name.starts_with(known))
    };
    let mut asked = Vec::new();
    let Some((own, library)) = calls.split_last() else { return asked };
    let mut ask = |address: u64, wants: &dyn Fn(u64) -> Wants, words: &str| {
        let Some(pc) = trace.call_before(address) else { return };
        let Ok(executed) = trace.find(&[pc], Nth::FromEnd(1), Some(last.thread)) else { return };
        let (thread, moment, words) = (executed.thread, executed.moment, words.to_owned());
        asked.push(Asked { thread, moment, wants: wants(pc), words, pc: Some(pc) });
    };
    let control = |pc| Wants { control: Some(pc), ..Wants::default() };
    let called = library.last().map(|(name, _)| name.clone()).unwrap_or_default();
    if named(&called, &GIVEN_POINTERS) {
        let pointer = |_| Wants { parts: Parts::general(7, 0, 8), ..Wants::default() };
        ask(own.1, &pointer, "the pointer that was given back");
    }
    // What only ends the program has not noticed anything.
    let noticed = library.iter().skip_while(|(name, _)| named(name, &ENDERS));
    for (_, address) in noticed {
        ask(*address, &control, "what the library found wrong");
    }
    ask(own.1, &control, "what decided that it gives up");
    asked
}
