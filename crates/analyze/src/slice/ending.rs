//! What to ask about the end of a program: the value that was wrong when it ended.

use super::question::{Follow, Question, Wants};
use crate::dependence::Trace;
use crate::dependence::query::{Executed, Nth};
use crate::semantics::{Meaning, Parts, Side};
use base::StepCount;
use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register,
};

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
        /// General registers that point to memory that is there, by the processor's number.
        pointers: Vec<u8>,
        /// The bytes of the instruction that was executed before, and the general registers.
        before: Option<(Vec<u8>, [u64; 16])>,
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
    pub moment: StepCount,
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
    let last = trace.last_executed(trace.last_thread(), StepCount(trace.len()));
    let Some(last) = last else { return Vec::new() };
    match ended {
        Ended::Fault { pc, code, stack, pointers, before } if !code.is_empty() => {
            let code = Decoder::with_ip(64, code, *pc, DecoderOptions::NONE).decode();
            let before = before.as_ref().map(|(bytes, general)| {
                let at = trace.blocks.statics[last.instruction as usize].pc;
                (Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode(), general)
            });
            match before.and_then(|(before, general)| sum(&code, &before, general)) {
                Some(addends) => addends.map(|one| one.asked(&last, *pc)).into(),
                None => fault(trace, &last, &code, *stack, pointers),
            }
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
        moment: StepCount(trace.len()),
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
        moment: StepCount(trace.len()),
        wants: Wants { control: Some(pc), ..Wants::default() },
        words: THE_WAY.into(),
        pc: Some(pc),
    }
}

/// An instruction faulted: the registers that formed its address, or a divisor. Base and index are asked
/// about one by one, so that the way of the one that is right does not bury that of the other.
fn fault(
    trace: &Trace,
    last: &Executed,
    instruction: &Instruction,
    stack: u64,
    pointers: &[u8],
) -> Vec<Asked> {
    let meaning = Meaning::of(instruction, &mut InstructionInfoFactory::new());
    let divides = matches!(instruction.mnemonic(), Mnemonic::Div | Mnemonic::Idiv);
    let (thread, moment, pc) = (last.thread, StepCount(trace.len()), Some(instruction.ip()));
    let (mut wants, mut words) = (Wants::default(), "a value that the instruction used");
    if instruction.mnemonic() == Mnemonic::Ret {
        wants.memory.push((stack, 8));
        words = "the address to return to";
    } else if divides && instruction.op0_kind() == OpKind::Register {
        wants.parts = Parts::of(instruction.op0_register());
        words = "the divisor";
    } else if let Some(asked) = base_and_index(instruction, pointers).filter(|_| !divides) {
        let asked = asked.map(|(register, words)| Asked {
            thread,
            moment,
            wants: Wants { parts: Parts::of(register), ..Wants::default() },
            words: words.into(),
            pc,
        });
        return asked.into();
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
    vec![Asked { thread, moment, wants, words: words.into(), pc }]
}

/// The registers that formed an address together, the one that is to blame first: the index if the base
/// points to memory.
fn base_and_index(
    instruction: &Instruction,
    pointers: &[u8],
) -> Option<[(Register, &'static str); 2]> {
    let (base, index) = (instruction.memory_base(), instruction.memory_index());
    let general = base.is_gpr64() && index.is_gpr64() && base != index && base != Register::RSP;
    if !general {
        return None;
    }
    let points = |register: Register| pointers.contains(&(register.number() as u8));
    // Without a scale the processor does not care which is which.
    let swapped = instruction.memory_index_scale() == 1 && points(index) && !points(base);
    let (base, index) = if swapped { (index, base) } else { (base, index) };
    let (pointer, number) = ((base, "the pointer"), (index, "the index"));
    Some(if points(base) { [number, pointer] } else { [pointer, number] })
}

/// A part of an address, and what it was to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Addend {
    register: Register,
    words: &'static str,
}

impl Addend {
    /// Asks where it came from, before the instruction that added it.
    fn asked(self, last: &Executed, pc: u64) -> Asked {
        let wants = Wants { parts: Parts::of(self.register), ..Wants::default() };
        let (thread, moment, words) = (last.thread, last.moment, self.words.into());
        Asked { thread, moment, wants, words, pc: Some(pc) }
    }
}

/// Code that is not optimised adds pointer and index before it goes there. Its parts, the one that is to blame
/// first: the pointer if it cannot be one.
fn sum(fault: &Instruction, before: &Instruction, general: &[u64; 16]) -> Option<[Addend; 2]> {
    let (total, added) = (before.op0_register(), before.op1_register());
    let adds = before.mnemonic() == Mnemonic::Add
        && before.next_ip() == fault.ip()
        && before.op1_kind() == OpKind::Register
        && before.op0_kind() == OpKind::Register
        && total.is_gpr64()
        && total != added
        && fault.memory_base() == total
        && fault.memory_index() == Register::None;
    adds.then_some(())?;
    let value = |register: Register| general[register.number()];
    let first = value(total).wrapping_sub(value(added));
    let may_point = |value: u64| (LOWEST..HIGHEST).contains(&value);
    // Which of the two is the pointer compilers leave open; it comes first, mostly.
    let swapped = !may_point(first) && may_point(value(added));
    let (base, index) = if swapped { (added, total) } else { (total, added) };
    let pointer = Addend { register: base, words: "the pointer" };
    let index = Addend { register: index, words: "the index" };
    let blameless = may_point(first) || swapped;
    Some(if blameless { [index, pointer] } else { [pointer, index] })
}

/// Between these are the addresses that programs have.
const LOWEST: u64 = 0x1_0000;
const HIGHEST: u64 = 1 << 47;

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
        let name = symbols::plain_name(name.as_deref().unwrap_or_default());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_was_added_up_has_two_parts_and_the_wrong_one_comes_first() {
        const INDEX: &str = "the index";
        // add rax, rdx; movzx eax, byte ptr [rax]
        let decode = |bytes: &[u8], ip| Decoder::with_ip(64, bytes, ip, 0).decode();
        let before = decode(&[0x48, 0x01, 0xd0], 0x1000);
        let fault = decode(&[0x0f, 0xb6, 0x00], 0x1003);
        let first = |base: u64, index: u64| {
            let mut general = [0; 16];
            (general[0], general[2]) = (base.wrapping_add(index), index);
            let [first, other] = sum(&fault, &before, &general).expect("a sum");
            assert_ne!(first.register, other.register);
            (first.register, first.words)
        };
        assert_eq!(first(0, 7), (Register::RAX, "the pointer"));
        assert_eq!(first(0x5555_5555_9000, 1 << 40), (Register::RDX, INDEX));
        assert_eq!(first(3 << 50, 0x5555_5555_9000), (Register::RAX, INDEX), "the other way round");
        // Another register, and an instruction that does not come next.
        assert_eq!(sum(&decode(&[0x0f, 0xb6, 0x03], 0x1003), &before, &[0; 16]), None);
        assert_eq!(sum(&decode(&[0x0f, 0xb6, 0x00], 0x1004), &before, &[0; 16]), None);
    }
}
