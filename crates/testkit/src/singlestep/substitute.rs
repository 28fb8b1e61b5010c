//! Answers that a test gives in the machine's place: what CPUID says, where the kernel maps memory.
//! An engine decides such things for its guest; to be comparable, the reference must be told.

use super::process::Registers;
use super::session::{Session, Stop, TRAP_FLAG};
use super::step::SystemCall;
use anyhow::Context;
use iced_x86::Instruction;
use nix::sys::ptrace;

/// What becomes of an instruction whose result the machine decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The processor executes it.
    Execute,
    /// It is not executed: the registers have been made what they are to be after it. The program
    /// counter moves on by itself.
    Done,
    /// The processor executes it with this in RAX, which is then put back.
    WithRax(u64),
    /// The system call is not made; this is its answer.
    Answer(i64),
    /// The system call is not made; this is its answer, and these bytes are put to this address.
    AnswerWith(i64, u64, Vec<u8>),
    /// Another system call is made in its place; `result` is the answer, if not that call's own.
    Instead(SystemCall),
}

const SYSCALL_LENGTH: u64 = 2;

/// Decides about the next instruction.
pub(super) type Substitute = Box<dyn FnMut(&Instruction, &mut Registers) -> Verdict>;

impl Session {
    /// From now on `decide` is asked about every CPUID, XGETBV, RDTSC(P), RDPID, RDRAND, RDSEED,
    /// XTEST, SYSCALL, XRSTOR and XSAVE of all kinds before it executes.
    pub fn substitute(
        &mut self,
        decide: impl FnMut(&Instruction, &mut Registers) -> Verdict + 'static,
    ) {
        self.substitute = Some(Box::new(decide));
    }

    /// The program's process.
    #[must_use]
    pub fn process_id(&self) -> i32 {
        self.process.pid.as_raw()
    }

    /// Steps once, unless the test has another idea.
    pub(super) fn perform(&mut self) -> anyhow::Result<Stop> {
        let decoded = self.decoded.clone().context("a step has an instruction")?;
        let (true, None, Some(decide)) =
            (decoded.decided_outside, self.inject, &mut self.substitute)
        else {
            return self.advance();
        };
        let before = self.regs;
        match decide(&decoded.instruction, &mut self.regs) {
            Verdict::Execute => {
                self.regs = before;
                self.advance()
            }
            Verdict::Done => self.skip(before, u64::from(decoded.length)),
            Verdict::WithRax(rax) => self.execute_with(before, rax),
            Verdict::Answer(answer) => self.answer(before, answer),
            Verdict::AnswerWith(answer, address, bytes) => {
                self.process.write(address, &bytes)?;
                self.answer(before, answer)
            }
            Verdict::Instead(call) => self.call_instead(before, &call),
        }
    }

    fn execute_with(&mut self, before: Registers, rax: u64) -> anyhow::Result<Stop> {
        self.regs = Registers { rax, ..before };
        ptrace::setregs(self.process.pid, self.regs)?;
        let stop = self.advance()?;
        if !matches!(stop, Stop::Ended(_)) {
            self.regs.rax = before.rax;
            ptrace::setregs(self.process.pid, self.regs)?;
        }
        self.before = before;
        Ok(stop)
    }

    fn answer(&mut self, before: Registers, answer: i64) -> anyhow::Result<Stop> {
        self.regs = before;
        self.regs.rax = answer.cast_unsigned();
        self.regs.rcx = before.rip.wrapping_add(SYSCALL_LENGTH);
        self.regs.r11 = before.eflags & !TRAP_FLAG;
        self.skip(before, SYSCALL_LENGTH)
    }

    fn skip(&mut self, before: Registers, length: u64) -> anyhow::Result<Stop> {
        self.regs.rip = before.rip.wrapping_add(length);
        ptrace::setregs(self.process.pid, self.regs)?;
        (self.before, self.injected) = (before, None);
        Ok(Stop::Stepped)
    }

    fn call_instead(&mut self, before: Registers, call: &SystemCall) -> anyhow::Result<Stop> {
        self.regs = with_call(before, call.number, call.arguments);
        ptrace::setregs(self.process.pid, self.regs)?;
        let stop = self.advance()?;
        self.before = before;
        if matches!(stop, Stop::Stepped) {
            let answer = call.result.map_or(self.regs.rax, i64::cast_unsigned);
            let [a, b, c, d, e, f] =
                [before.rdi, before.rsi, before.rdx, before.r10, before.r8, before.r9];
            self.regs = with_call(self.regs, answer, [a, b, c, d, e, f]);
            ptrace::setregs(self.process.pid, self.regs)?;
        }
        Ok(stop)
    }
}

fn with_call(registers: Registers, rax: u64, arguments: [u64; 6]) -> Registers {
    let [rdi, rsi, rdx, r10, r8, r9] = arguments;
    Registers { rax, rdi, rsi, rdx, r10, r8, r9, ..registers }
}
