//! What of the address space is ours ([`layout::own`]), as the guest must see it: nothing is there.
//!
//! An access of the guest's to such an address ends as it does natively, with SIGSEGV and `SEGV_MAPERR`,
//! a system call with what the kernel answers about a bad address. How that is seen to:
//!
//! * **Where accesses are tested** the shadow of what is ours is not mapped. The test faults, and the
//!   dispatcher asks [`trespass`] before it lets the instruction run.
//! * **Instructions that the dispatcher looks at** anyway (gathers, masked moves, strings) are asked about
//!   in every mode.
//! * **Elsewhere** the processor refuses what is not mapped and writes to what is read-only ([`deny`] gives
//!   the refusal its native form). Reads of what is there, and writes to what we write ourselves, it lets
//!   pass, so that [`layout`] keeps both out of the way of text and small numbers.
//! * **The kernel** is handed addresses behind which nothing is in place of ours ([`Kept`]), and what it
//!   copies for us (`guest`) starts with the same question.

use super::cpu::{self, Registers};
use super::engine::Engine;
use super::explicit;
use super::guest::Checked;
use super::signal::SignalInfo;
use super::signal::frame::GuestMemory;
use super::thread::Thread;
use super::translate::accesses::{self, Accesses};
use crate::layout;
use events::shape::Segment;
use iced_x86::{EncodingKind, Instruction, InstructionInfoFactory, Mnemonic, OpKind};
use std::ops::Range;
use syscalls::Argument;

/// `si_code` of a fault where nothing is mapped.
const NOT_MAPPED: i32 = 1;
/// What the processor says of a page fault: by a write; in user mode.
const WRITE: u64 = 2;
const USER: u64 = 4;
const PAGE_FAULT: u64 = 14;
const PROTECTION: u64 = 13;

/// Whether an address is ours.
pub fn is(address: u64) -> bool {
    layout::own().iter().any(|own| own.contains(&address))
}

/// How the instruction that is next faults, if it touches what is ours.
pub fn trespass(engine: &Engine, thread: &Thread) -> Option<SignalInfo> {
    let registers = &engine.cpu.registers;
    let instruction = engine.decode_one(registers.pc);
    let accesses = accesses::of(&instruction, &mut InstructionInfoFactory::new());
    let touched = match accesses {
        Accesses::Repeat { .. } => first_of_repeat(&accesses, registers),
        _ => {
            let mut touched = Vec::new();
            let mut put = |write, address: u64, size: u32| touched.push((write, address, size));
            explicit::each(&instruction, registers, &thread.vector, &mut put);
            touched
        }
    };
    let (_, address, _) = *touched.iter().find(|(_, address, _)| is(*address))?;
    if touched.iter().any(|(_, at, size)| *at == address && is_misaligned(&instruction, *at, *size))
    {
        return Some(SignalInfo::fault(libc::SIGSEGV, libc::SI_KERNEL, 0, (PROTECTION, 0)));
    }
    // What is read to be written back faults as a write.
    let write = touched.iter().any(|(write, at, _)| *write && *at == address);
    let error = USER | if write { WRITE } else { 0 };
    Some(SignalInfo::fault(libc::SIGSEGV, NOT_MAPPED, address, (PAGE_FAULT, error)))
}

/// The first repetition of a string instruction. Those that follow come to our memory only past what is
/// not mapped.
fn first_of_repeat(accesses: &Accesses, registers: &Registers) -> Vec<(bool, u64, u32)> {
    let Accesses::Repeat { size, source, compares, writes, narrow, segment } = *accesses else {
        return Vec::new();
    };
    let mask = if narrow { 0xffff_ffff } else { u64::MAX };
    let [count, from, to] = [1, 6, 7].map(|register| registers.general[register] & mask);
    if count == 0 {
        return Vec::new();
    }
    let base = match segment {
        Segment::Flat => 0,
        Segment::Fs => registers.fs,
        Segment::Gs => cpu::gs_base(),
    };
    [(source, false, from.wrapping_add(base)), (compares, false, to), (writes, true, to)]
        .into_iter()
        .filter(|(there, ..)| *there)
        .map(|(_, write, address)| (write, address, u32::from(size)))
        .collect()
}

/// Whether the processor refuses an operand for its alignment, before it looks whether it is there.
fn is_misaligned(instruction: &Instruction, address: u64, size: u32) -> bool {
    use Mnemonic as M;
    let aligned_move = matches!(
        instruction.mnemonic(),
        M::Vmovaps
            | M::Vmovapd
            | M::Vmovdqa
            | M::Vmovntps
            | M::Vmovntpd
            | M::Vmovntdq
            | M::Vmovntdqa
    );
    let unaligned_move = matches!(
        instruction.mnemonic(),
        M::Movups | M::Movupd | M::Movdqu | M::Lddqu | M::Maskmovdqu
    );
    let has_vector = (0..instruction.op_count()).any(|operand| {
        instruction.op_kind(operand) == OpKind::Register
            && instruction.op_register(operand).is_xmm()
    });
    let legacy = instruction.encoding() == EncodingKind::Legacy && has_vector && size == 16;
    let alignment = match instruction.mnemonic() {
        M::Fxsave | M::Fxsave64 | M::Fxrstor | M::Fxrstor64 => 16,
        M::Xsave | M::Xsave64 | M::Xsavec | M::Xsavec64 | M::Xsaveopt | M::Xsaveopt64 => 64,
        M::Xrstor | M::Xrstor64 => 64,
        M::Cmpxchg16b => 16,
        _ if aligned_move => u64::from(size.max(1)),
        _ if legacy && !unaligned_move => 16,
        _ => 1,
    };
    !address.is_multiple_of(alignment)
}

/// A page that the guest does not have has refused it: not because of what is there.
pub fn deny(info: &mut SignalInfo) {
    if info.number() == libc::SIGSEGV && info.trap.0 == PAGE_FAULT && is(info.address()) {
        let error = info.trap.1 & (WRITE | USER);
        *info = SignalInfo::fault(libc::SIGSEGV, NOT_MAPPED, info.address(), (PAGE_FAULT, error));
    }
}

/// Arguments of a system call as the kernel may have them: it touches nothing of ours.
pub struct Kept {
    /// The arguments.
    pub arguments: [u64; 6],
    /// A vector of buffers that one of them points to.
    _vector: Vec<[u64; 2]>,
    /// Whether something deeper inside leads to us, for which there is only one answer.
    pub is_bad: bool,
}

/// Most buffers of a vector.
const MOST_BUFFERS: u64 = 1024;

impl Kept {
    /// Of a call of the guest's.
    pub fn of(engine: &Engine, number: u64, arguments: [u64; 6]) -> Self {
        let mut kept = Self { arguments, _vector: Vec::new(), is_bad: false };
        let Some(call) = syscalls::get(number) else { return kept };
        for (index, argument) in call.arguments.iter().enumerate() {
            let address = &mut kept.arguments[index];
            match argument {
                Argument::Fd
                | Argument::DirFd
                | Argument::Size
                | Argument::Number
                | Argument::Flags
                | Argument::Mode
                | Argument::Signal
                | Argument::Pid => {}
                _ if is(*address) => *address = elsewhere(*address),
                Argument::Vector(count) | Argument::DataVector(count)
                    if !is_of_another(number, index) =>
                {
                    if let Some(vector) = kept_vector(*address, arguments[*count]) {
                        *address = vector.as_ptr() as u64;
                        kept._vector = vector;
                    }
                }
                _ => {}
            }
        }
        kept.is_bad = is_message(number) && leads_here(engine, number, kept.arguments);
        kept
    }
}

/// Whether a vector is about the memory of another process.
fn is_of_another(number: u64, index: usize) -> bool {
    let transfers = [libc::SYS_process_vm_readv, libc::SYS_process_vm_writev];
    transfers.contains(&(number as i64)) && index == 3
}

fn is_message(number: u64) -> bool {
    let messages = [libc::SYS_sendmsg, libc::SYS_recvmsg, libc::SYS_sendmmsg, libc::SYS_recvmmsg];
    messages.contains(&(number as i64))
}

/// Whether a call's buffers are ours, wherever it is told of them.
fn leads_here(memory: &Engine, number: u64, arguments: [u64; 6]) -> bool {
    let (mut reads, mut ranges) = (Vec::new(), Vec::new());
    syscalls::reads(number, arguments, memory, &mut reads);
    let before = syscalls::before(number, arguments, memory);
    let failed = -i64::from(libc::EFAULT);
    syscalls::written(number, arguments, failed, &before, memory, &mut ranges);
    ranges.extend(reads.iter().map(|read| read.range));
    ranges.iter().any(|range| is(range.address) && !NOWHERE.contains(&range.address))
}

/// A page that is never mapped, and stands for what is ours.
const NOWHERE: Range<u64> = layout::ARENA.start..layout::ARENA.start + 4096;

/// An address where nothing is, as far into its page.
fn elsewhere(address: u64) -> u64 {
    NOWHERE.start + address % 4096
}

/// A copy of a vector of buffers, if one of them is ours.
fn kept_vector(at: u64, count: u64) -> Option<Vec<[u64; 2]>> {
    let count = count.min(MOST_BUFFERS) as usize;
    let mut bytes = vec![0; 16 * count];
    if count == 0 || !Checked.read(at, &mut bytes) {
        return None;
    }
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let mut vector: Vec<[u64; 2]> =
        bytes.chunks_exact(16).map(|pair| [word(&pair[..8]), word(&pair[8..])]).collect();
    let ours = |buffer: &[u64; 2]| is(buffer[0]);
    if !vector.iter().any(ours) {
        return None;
    }
    for buffer in vector.iter_mut().filter(|buffer| ours(buffer)) {
        buffer[0] = elsewhere(buffer[0]);
    }
    Some(vector)
}
