//! From the registers of a stopped thread and its memory to the calls that are active.
//!
//! Each frame says how it was found, so that a reader can tell fact from guess: by call frame
//! information where there is any, else by the chain of frame pointers, else by looking for a
//! return address on the stack. A stack of garbage yields few and guessed frames, never a loop:
//! every step must move up the stack, and their number is bounded.

use crate::address::FileAddress;
use crate::program::Program;
use crate::registers::{Memory, Register, Registers};
use base::Address;
use serde::{Deserialize, Serialize};

/// Frames beyond this many are not looked at: runaway recursion fills a stack with far more than
/// anyone reads.
const MOST_FRAMES: usize = 100_000;
/// How many words of stack a guess looks through.
const SCANNED_WORDS: u64 = 1024;
/// A frame pointer further up than this is not believed.
const LARGEST_FRAME: u64 = 64 << 20;

/// How a frame was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FoundBy {
    /// The registers of the thread.
    Registers,
    /// The rules of the callee's call frame information: certain.
    CallFrameInfo,
    /// The callee's frame pointer: likely.
    FramePointer,
    /// The return address on top of the stack, after a jump to where no code is: likely.
    TopOfStack,
    /// A value on the stack that looks like a return address: a guess.
    Scan,
}

/// One active call.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The next instruction to run in it.
    pub pc: Address,
    /// Its registers, as far as they are known.
    pub registers: Registers,
    /// Its canonical frame address: where the stack pointer was before the call that made it.
    pub cfa: Option<Address>,
    /// How it was found.
    pub found_by: FoundBy,
    /// Whether `pc` was reached by running there (or a signal interrupted it there), in contrast
    /// to being the return address of a call.
    pub exact: bool,
}

impl Frame {
    /// The address that stands for what the frame is doing: the instruction itself, or the call
    /// it has not returned from. A call that never returns may be the last instruction of its
    /// function, so that the return address is already another's.
    #[must_use]
    pub fn code(&self) -> Address {
        if self.exact { self.pc } else { self.pc.offset(-1) }
    }
}

/// Why there are no more frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StackEnd {
    /// The outermost function was reached.
    Outermost,
    /// No caller could be found, or the stack makes no sense from there.
    Lost,
    /// There are more frames than anyone reads.
    TooMany,
}

/// The active calls of a thread, innermost first.
#[derive(Clone, Debug)]
pub struct Stack {
    /// At least one frame.
    pub frames: Vec<Frame>,
    /// Why there are no more.
    pub end: StackEnd,
}

impl Program {
    /// The active calls of a thread with these registers and this memory.
    #[must_use]
    pub fn unwind(&self, registers: &Registers, memory: &dyn Memory) -> Stack {
        self.unwind_at_most(registers, memory, MOST_FRAMES)
    }

    /// The innermost `limit` active calls.
    #[must_use]
    pub fn unwind_at_most(
        &self,
        registers: &Registers,
        memory: &dyn Memory,
        limit: usize,
    ) -> Stack {
        let mut frames = vec![Frame {
            pc: registers.rip(),
            registers: registers.clone(),
            cfa: None,
            found_by: FoundBy::Registers,
            exact: true,
        }];
        let unwinder = Unwinder { program: self, memory };
        let end = loop {
            if frames.len() >= limit.max(1) {
                break StackEnd::TooMany;
            }
            let Some(callee) = frames.last_mut() else { break StackEnd::Lost };
            match unwinder.caller(callee) {
                Some(frame) if frame.pc.0 == 0 => break StackEnd::Outermost,
                Some(frame) => frames.push(frame),
                None => break StackEnd::Lost,
            }
        };
        // The innermost limit-th frame still deserves its own CFA.
        if end == StackEnd::TooMany
            && let Some(last) = frames.last_mut()
        {
            unwinder.caller(last);
        }
        Stack { frames, end }
    }
}

struct Unwinder<'a> {
    program: &'a Program,
    memory: &'a dyn Memory,
}

impl Unwinder<'_> {
    /// The caller of `callee`, whose canonical frame address is filled in on the way.
    fn caller(&self, callee: &mut Frame) -> Option<Frame> {
        if let Some(frame) = self.by_call_frame_info(callee) {
            return Some(frame);
        }
        if callee.exact && !self.program.is_code(callee.pc) {
            return self.by_top_of_stack(callee).or_else(|| self.by_frame_pointer(callee));
        }
        self.by_frame_pointer(callee).or_else(|| self.by_scan(callee))
    }

    fn by_call_frame_info(&self, callee: &mut Frame) -> Option<Frame> {
        let (loaded, _) = self.program.locate(callee.code())?;
        let address = FileAddress::unloaded(callee.code(), loaded.bias());
        let rules = loaded.module()?.call_frames();
        let step = rules.step(address, loaded.bias(), &callee.registers, self.memory)?;
        callee.cfa = Some(step.cfa);
        let pc = step.caller.rip();
        // A handler may run on a stack of its own, anywhere; calls only ever grow the stack.
        if !step.signal && step.caller.rsp() <= callee.registers.rsp() && pc.0 != 0 {
            return None;
        }
        let caller = Frame {
            pc,
            registers: step.caller,
            cfa: None,
            found_by: FoundBy::CallFrameInfo,
            exact: step.signal,
        };
        (pc.0 == 0 || step.signal || self.program.is_code(caller.code())).then_some(caller)
    }

    fn by_frame_pointer(&self, callee: &mut Frame) -> Option<Frame> {
        let rsp = callee.registers.rsp();
        let rbp = callee.registers.get(Register::RBP).map(Address)?;
        if rbp < rsp || rbp.0 - rsp.0 > LARGEST_FRAME || !rbp.0.is_multiple_of(8) {
            return None;
        }
        let pc = Address(self.memory.word(rbp.offset(8))?);
        if !self.is_return_address(pc) {
            return None;
        }
        callee.cfa = Some(rbp.offset(16));
        let mut registers = Registers::default();
        registers.set(Register::RBP, self.memory.word(rbp));
        Some(made(registers, rbp.offset(16), pc, FoundBy::FramePointer))
    }

    fn by_top_of_stack(&self, callee: &mut Frame) -> Option<Frame> {
        let rsp = callee.registers.rsp();
        let pc = Address(self.memory.word(rsp)?);
        if !self.is_return_address(pc) {
            return None;
        }
        callee.cfa = Some(rsp.offset(8));
        // Nothing ran since the call: the caller's registers are all still there.
        Some(made(callee.registers.clone(), rsp.offset(8), pc, FoundBy::TopOfStack))
    }

    fn by_scan(&self, callee: &Frame) -> Option<Frame> {
        let start = callee.registers.rsp().0.checked_next_multiple_of(8)?;
        for at in (0..SCANNED_WORDS).map(|word| Address(start.wrapping_add(word * 8))) {
            let pc = Address(self.memory.word(at)?);
            if self.is_return_address(pc) {
                let mut registers = Registers::default();
                registers.set(Register::RBP, callee.registers.get(Register::RBP));
                return Some(made(registers, at.offset(8), pc, FoundBy::Scan));
            }
        }
        None
    }

    /// Whether `pc` lies in code, right behind a call instruction.
    fn is_return_address(&self, pc: Address) -> bool {
        const LONGEST_CALL: usize = 7;
        if !self.program.is_code(pc.offset(-1)) {
            return false;
        }
        let mut code = [0; LONGEST_CALL];
        let start = pc.offset(-(LONGEST_CALL as i64));
        if !self.memory.read(start, &mut code) && !self.program.code_bytes(start, &mut code) {
            return false;
        }
        ends_in_call(&code)
    }
}

fn made(mut registers: Registers, rsp: Address, pc: Address, found_by: FoundBy) -> Frame {
    registers.set(Register::RSP, Some(rsp.0));
    registers.set(Register::RIP, Some(pc.0));
    Frame { pc, registers, cfa: None, found_by, exact: false }
}

/// Whether the last bytes of `code` are a near call: `e8 rel32`, or `ff /2` in any of its sizes.
fn ends_in_call(code: &[u8; 7]) -> bool {
    let indirect = |length: usize| {
        let Some([0xff, modrm, ..]) = code.get(7 - length..) else { return false };
        let (mode, register, base) = (modrm >> 6, (modrm >> 3) & 7, modrm & 7);
        let sib = usize::from(base == 4 && mode != 3);
        let displacement = match mode {
            0 if base == 5 => 4,
            0 if sib == 1 && code.get(9 - length).is_some_and(|sib| sib & 7 == 5) => 4,
            1 => 1,
            2 => 4,
            _ => 0,
        };
        register == 2 && 2 + sib + displacement == length
    };
    code[2] == 0xe8 || (2..=7).any(indirect)
}

#[cfg(test)]
mod tests {
    use super::ends_in_call;

    #[test]
    fn calls_are_told_from_other_code() {
        let cases: [(&[u8], bool); 9] = [
            (&[0xe8, 1, 2, 3, 4], true),
            (&[0xff, 0xd0], true),
            (&[0x41, 0xff, 0xd4], true),
            (&[0xff, 0x15, 1, 2, 3, 4], true),
            (&[0xff, 0x50, 0x18], true),
            (&[0xff, 0x54, 0x24, 0x08], true),
            (&[0xff, 0x94, 0xc4, 1, 2, 3, 4], true),
            (&[0xff, 0xe0], false),
            (&[0x48, 0x89, 0xe5], false),
        ];
        for (end, expected) in cases {
            let mut code = [0x90; 7];
            code[7 - end.len()..].copy_from_slice(end);
            assert_eq!(ends_in_call(&code), expected, "{end:x?}");
        }
    }
}
