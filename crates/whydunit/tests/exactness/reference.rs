//! What ptrace sees: the program stepped natively in the layout that the engine gives it, with the
//! processor and the kernel that the engine shows it.
//!
//! The processor is the engine's CPUID, and signal frames have no AVX-512 state. Of the kernel, the engine decides where memory is mapped
//! and which calls do not exist, and numbers of processes differ by nature; these answers are the
//! ones it gave, everything else is the kernel's own and must agree by itself.

use super::engine_log::{Call, TOOL};
use engine::runner::cpu;
use engine::runner::emulate::{Emulated, emulate};
use iced_x86::{Instruction, Mnemonic};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Stdio;
use testkit::singlestep::{RUNNER, Registers, Session, Start, SystemCall, Verdict};

const MMAP: u64 = 9;
const BRK: u64 = 12;
const MREMAP: u64 = 25;
const GETPID: u64 = 39;
const EXIT: u64 = 60;
const KILL: u64 = 62;
const READLINK: u64 = 89;
const GETPPID: u64 = 110;
const RT_SIGQUEUEINFO: u64 = 129;
const GETTID: u64 = 186;
const TKILL: u64 = 200;
const SET_TID_ADDRESS: u64 = 218;
const EXIT_GROUP: u64 = 231;
const TGKILL: u64 = 234;
const RSEQ: u64 = 334;
const CLONE3: u64 = 435;

const MAP_ANONYMOUS_PRIVATE_FIXED: u64 = 0x32;
const MAP_FIXED: u64 = 0x10;
const MREMAP_FIXED: u64 = 2;
const PROT_READ_WRITE: u64 = 3;
const PAGE: u64 = 4096;

/// Starts the program, ready for its first instruction. `calls` are the engine's.
pub fn launch(program: &Path, calls: &[Call]) -> anyhow::Result<Session> {
    let command: [OsString; 4] = [TOOL.into(), "native".into(), "--".into(), program.into()];
    let start = Start::AfterStop(RUNNER);
    let mut session = Session::launch(&command, &start, Stdio::null())?;
    let mut kernel = Kernel {
        process: session.process_id() as u64,
        calls: calls.iter().copied().collect(),
        heap_end: None,
        program: program.as_os_str().as_bytes().to_vec(),
    };
    session.make_frames_small();
    session.substitute(move |instruction, registers| match instruction.mnemonic() {
        Mnemonic::Syscall => kernel.decide(registers),
        _ => processor(instruction, registers),
    });
    Ok(session)
}

/// Whether the answer of a call is the same under the engine by nature; times are not.
pub fn has_repeatable_answer(number: u64) -> bool {
    !matches!(number, GETPPID | 13 | 15 | 201)
}

/// How many registers are arguments of a call. Behind them may stand leftovers of the bytes that
/// the kernel makes up for AT_RANDOM.
pub fn argument_count(number: u64) -> usize {
    match number {
        BRK | EXIT | EXIT_GROUP => 1,
        _ => 6,
    }
}

fn processor(instruction: &Instruction, registers: &mut Registers) -> Verdict {
    let mut guest = to_engine(registers);
    match emulate(instruction, &mut guest, engine::processor::here().base_bits) {
        // XSAVE and XRSTOR: AVX-512 is not there, so it has no room.
        Emulated::Unknown | Emulated::Fault => Verdict::WithRax(registers.rax & cpu::VECTOR_MASK),
        Emulated::Done => {
            from_engine(&guest, registers);
            Verdict::Done
        }
    }
}

fn to_engine(r: &Registers) -> cpu::Registers {
    let general = [
        r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12,
        r.r13, r.r14, r.r15,
    ];
    cpu::Registers { general, flags: r.eflags, fs: r.fs_base, pc: r.rip }
}

/// What the emulated instructions can change.
fn from_engine(guest: &cpu::Registers, r: &mut Registers) {
    [
        r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12,
        r.r13, r.r14, r.r15,
    ] = guest.general;
    r.eflags = guest.flags;
}

/// The kernel as the engine shows it.
struct Kernel {
    process: u64,
    calls: VecDeque<Call>,
    heap_end: Option<u64>,
    program: Vec<u8>,
}

impl Kernel {
    fn decide(&mut self, r: &Registers) -> Verdict {
        let arguments = [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9];
        let Some((number, _, answer)) = self.calls.pop_front() else { return Verdict::Execute };
        if number != r.rax {
            // The comparison will tell.
            return Verdict::Execute;
        }
        let instead = |arguments: [u64; 6], result: Option<i64>| {
            Verdict::Instead(SystemCall { number, arguments, result })
        };
        let [a, b, c, d, e, f] = arguments;
        match number {
            RSEQ | CLONE3 => Verdict::Answer(answer),
            GETPID | GETTID | SET_TID_ADDRESS => instead(arguments, Some(answer)),
            KILL if a as i64 > 0 => instead([self.process, b, c, d, e, f], None),
            TKILL | RT_SIGQUEUEINFO => instead([self.process, b, c, d, e, f], None),
            TGKILL => instead([self.process, self.process, c, d, e, f], None),
            MMAP if answer > 0 => instead([answer as u64, b, c, d | MAP_FIXED, e, f], None),
            MREMAP if answer > 0 && answer as u64 != a => {
                instead([a, b, c, d | MREMAP_FIXED, answer as u64, f], None)
            }
            // The C library asks for the program's own path, which natively is the tool's.
            READLINK => Verdict::AnswerWith(answer, b, self.program.clone()),
            BRK => self.heap(answer as u64),
            _ => Verdict::Execute,
        }
    }

    /// The heap ends where the engine says; what it gains is mapped.
    fn heap(&mut self, end: u64) -> Verdict {
        let before = self.heap_end.replace(end).unwrap_or(end).next_multiple_of(PAGE);
        let grown = end.next_multiple_of(PAGE).saturating_sub(before);
        if grown == 0 {
            return Verdict::Answer(end as i64);
        }
        let flags = MAP_ANONYMOUS_PRIVATE_FIXED;
        Verdict::Instead(SystemCall {
            number: MMAP,
            arguments: [before, grown, PROT_READ_WRITE, flags, u64::MAX, 0],
            result: Some(end as i64),
        })
    }
}
