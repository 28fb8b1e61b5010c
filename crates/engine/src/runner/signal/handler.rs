//! The handler that the kernel calls, on the thread's own stack block, with everything blocked.
//!
//! Rules of the house: no allocation, no locks, no thread-local storage (FS may be the guest's),
//! no panics. It notes what happened and, if the thread was in translated code at an instruction
//! boundary, makes the kernel return to the dispatcher instead. Between boundaries it lets the
//! thread go on by single steps; an inserted sequence is only a few instructions long.
//!
//! In Rust code it touches nothing but what is [`SharedState`]; in translated code the dispatcher has lent
//! engine and thread ([`crate::runner::context`]).

use super::{KICK, Mask, SignalInfo, TRAP_TRACE, is_fault};
use crate::layout;
use crate::processor;
use crate::ring;
use crate::runner::cache;
use crate::runner::context::lent;
use crate::runner::cpu::{self, ATTENTION, Registers, VECTOR_MASK};
use crate::runner::engine::Engine;
use crate::runner::events::Ring;
use crate::runner::follow;
use crate::runner::own;
use crate::runner::screens::shadow;
use crate::runner::stack;
use crate::runner::thread::{SharedState, Thread, VECTOR_USED};
use crate::runner::traced;
use crate::runner::translate::facts::number;
use crate::runner::translate::lower::{EXIT_FAULT, EXIT_SUSPECT, SLOT_RDX};
use iced_x86::{Code, Decoder, DecoderOptions, Register};
use std::arch::global_asm;
use std::sync::atomic::Ordering;

/// The kernel's `struct ucontext`, as far as it is used.
#[repr(C)]
pub struct KernelContext {
    flags: u64,
    link: u64,
    stack: [u64; 3],
    /// r8 … r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, rflags.
    registers: [u64; 18],
    segments: u64,
    error: u64,
    trap: u64,
    old_mask: u64,
    cr2: u64,
    fpstate: *const u8,
    reserved: [u64; 8],
    mask: u64,
}

/// Where each general register stands in [`KernelContext::registers`], by hardware number.
pub const ORDER: [usize; 16] = [13, 14, 12, 11, 15, 10, 9, 8, 0, 1, 2, 3, 4, 5, 6, 7];
const RSP: usize = 15;
const RIP: usize = 16;
const FLAGS: usize = 17;
const RAX: usize = 13;
const R12: usize = 4;
const TRAP_FLAG: u64 = 0x100;
/// CF, PF, AF, ZF, SF and OF.
const ARITHMETIC: u64 = 0x8d5;
const PROTECTION: u64 = 13;
const ALIGNMENT_CHECK: u64 = 17;

unsafe extern "C" {
    fn whydunit_signal_entry();
    fn whydunit_signal_restorer();
}

/// Address that the kernel calls.
pub fn entry() -> u64 {
    whydunit_signal_entry as *const () as u64
}

/// Address that the kernel calls before there is a guest.
pub fn early_entry() -> u64 {
    early_fault as *const () as u64
}

extern "C" fn early_fault(signal: i32, info: *const [u8; 128], context: *mut KernelContext) -> ! {
    // SAFETY: the kernel passes valid pointers.
    let (info, context) = unsafe { (&*info, &*context) };
    let info = SignalInfo { raw: *info, trap: (context.trap, context.error), cr2: context.cr2 };
    crate::runner::report::fault_of_ours_in_handler(signal, context.registers[RIP], info.address())
}

/// Address that the handler returns to.
pub fn restorer() -> u64 {
    whydunit_signal_restorer as *const () as u64
}

global_asm!(
    r#"
    .text
    .globl whydunit_signal_entry
whydunit_signal_entry:                  // the guest may have set AC: Rust must not run with it
    pushfq
    and qword ptr [rsp], ~0x40000
    popfq
    sub rsp, 8
    call {handle}
    add rsp, 8
    ret
    .globl whydunit_signal_restorer
whydunit_signal_restorer:
    mov eax, 15
    syscall
    "#,
    handle = sym handle,
);

extern "C" fn handle(signal: i32, info: *const [u8; 128], context: *mut KernelContext) {
    // SAFETY: the kernel passes valid pointers, and the handler runs on the thread's own block.
    let (info, context, thread) = unsafe { (&*info, &mut *context, &*stack::owner()) };
    let info = SignalInfo { raw: *info, trap: (context.trap, context.error), cr2: context.cr2 };
    if traced::is_report(signal) {
        return;
    }
    let raised_here = is_fault(signal) && info.code() > 0;
    if raised_here {
        fault(info, context, thread);
    } else if signal == KICK
        && (ring::is_summons(&info.raw) || take_kick(thread) || traced::is_asked())
    {
        thread.preempt.store(true, Ordering::Relaxed);
        if thread.inbox.signals() == Mask::default() {
            redo_interrupted_call(context);
        }
        interrupt(context, thread);
    } else {
        traced::came(signal, context.registers[RIP]);
        thread.inbox.put(info);
        context.mask = Mask(u64::MAX).blockable().0;
        interrupt(context, thread);
    }
}

/// Whether the signal is a waiter's, not the guest's own.
fn take_kick(thread: &SharedState) -> bool {
    let one_less = |kicks: u32| kicks.checked_sub(1);
    thread.kicks.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
}

/// Makes sure that the dispatcher looks at the thread soon.
fn interrupt(context: &mut KernelContext, thread: &SharedState) {
    thread.attend();
    let landmarks = cpu::landmarks();
    let pc = context.registers[RIP];
    if (landmarks.syscall_start..=landmarks.syscall_instruction).contains(&pc) {
        if thread.inbox.signals() != Mask::default() {
            context.registers[RIP] = landmarks.syscall_interrupted;
        }
        return;
    }
    if cache::contains(pc) {
        ATTENTION.store(1, Ordering::Relaxed);
        leave_or_step(context);
    } else if (landmarks.enter_start..landmarks.enter_end).contains(&pc) {
        ATTENTION.store(1, Ordering::Relaxed);
        context.registers[RIP] = landmarks.enter_start;
        context.registers[RSP] = cpu::host_stack();
        context.registers[FLAGS] = 2;
    } else if follow::leaving().contains(&pc) {
        ATTENTION.store(1, Ordering::Relaxed);
        context.registers[RIP] = follow::leaving().start;
        context.registers[RSP] = cpu::host_stack();
        context.registers[FLAGS] = 2;
    } else if thread.is_running() {
        ATTENTION.store(1, Ordering::Relaxed);
    }
}

/// A kick can come when its target has just let go of the baton: the system call that it then
/// interrupts must not notice.
fn redo_interrupted_call(context: &mut KernelContext) {
    let after = cpu::landmarks().syscall_instruction + 2;
    if context.registers[RIP] == after && context.registers[RAX] as i64 == -i64::from(libc::EINTR) {
        // SAFETY: the trampoline keeps the address of number and arguments in r12.
        context.registers[RAX] = unsafe { *(context.registers[R12] as *const u64) };
        context.registers[RIP] = cpu::landmarks().syscall_instruction;
    }
}

/// In translated code: back to the dispatcher if the guest's state is that of an instruction
/// boundary, else one instruction further.
fn leave_or_step(context: &mut KernelContext) {
    // SAFETY: it has interrupted translated code.
    let (engine, thread) = unsafe { lent() };
    let located = engine.code.cache.locate(context.registers[RIP]);
    match located {
        Some(located) if located.boundary => {
            context.registers[FLAGS] &= !TRAP_FLAG;
            let registers = guest_registers(engine, context, &located);
            thread.interrupted.left = Some(located.left());
            return_to_dispatcher(context, (engine, thread), registers, cpu::EXIT_ATTENTION as u32);
        }
        _ => context.registers[FLAGS] |= TRAP_FLAG,
    }
}

fn guest_registers(
    engine: &Engine,
    context: &KernelContext,
    located: &cache::Located,
) -> Registers {
    let mut registers = Registers { fs: read_fs(), pc: located.pc, ..Registers::default() };
    for (register, place) in ORDER.iter().enumerate() {
        registers.general[register] = context.registers[*place];
    }
    registers.flags = context.registers[FLAGS];
    located.point.spills.restore(&mut registers, &engine.cpu.slots);
    registers
}

fn read_fs() -> u64 {
    let base: u64;
    // SAFETY: reads a register.
    unsafe { std::arch::asm!("rdfsbase {}", out(reg) base) };
    base
}

/// Makes the kernel return to the dispatcher with the guest's state put away.
fn return_to_dispatcher(
    context: &mut KernelContext,
    (engine, thread): (&mut Engine, &mut Thread),
    registers: Registers,
    exit: u32,
) {
    engine.cpu.registers = registers;
    engine.cpu.exit = u64::from(exit);
    save_vector_state(context, thread);
    context.registers[RIP] = cpu::landmarks().to_dispatcher;
    context.registers[RSP] = cpu::host_stack();
    context.registers[FLAGS] = 2;
}

/// The kernel's frame has the vector registers in the same format as ours.
fn save_vector_state(context: &KernelContext, thread: &mut Thread) {
    // SAFETY: the kernel's XSAVE image has at least the legacy area, header and AVX state, which
    // is what the runner checked for at start-up.
    let image = unsafe { std::slice::from_raw_parts(context.fpstate, VECTOR_USED) };
    thread.vector.0[..VECTOR_USED].copy_from_slice(image);
    // Bytes 464..512 are the kernel's own notes.
    thread.vector.0[464..512].fill(0);
    let present = u64::from_le_bytes([
        image[512], image[513], image[514], image[515], image[516], image[517], image[518],
        image[519],
    ]);
    thread.vector.0[512..520].copy_from_slice(&(present & VECTOR_MASK).to_le_bytes());
    thread.vector.0[520..576].fill(0);
}

/// A signal that the instruction under way raised.
fn fault(info: SignalInfo, context: &mut KernelContext, shared: &SharedState) {
    let pc = context.registers[RIP];
    // Only we step through translated code; POPF may have cleared the flag that made it so.
    let stepping = info.number() == libc::SIGTRAP && info.code() == TRAP_TRACE;
    if stepping {
        if follow::leaving().contains(&pc) {
            return;
        }
        // Out of the cache by the last step: the dispatcher is about to look anyway.
        context.registers[FLAGS] &= !TRAP_FLAG;
        if cache::contains(pc) && shared.is_wanted() {
            leave_or_step(context);
        }
        return;
    }
    if !cache::contains(pc) {
        fault_of_ours(&info, context);
    }
    // SAFETY: it has interrupted translated code.
    let (engine, thread) = unsafe { lent() };
    fault_in_cache(info, context, engine, thread);
}

/// The same in translated code.
fn fault_in_cache(
    info: SignalInfo,
    context: &mut KernelContext,
    engine: &mut Engine,
    thread: &mut Thread,
) {
    let pc = context.registers[RIP];
    if layout::EVENT_BUFFERS.contains(&info.address())
        && info.number() == libc::SIGSEGV
        && let Some(register) =
            record_register(engine, pc).filter(|record| is_relative_to(pc, *record))
    {
        context.registers[ORDER[register as usize]] = events_full(engine);
        return;
    }
    if info.trap.0 == ALIGNMENT_CHECK && store_unaligned(engine, context) {
        return;
    }
    let mut info = info;
    if layout::BEYOND_TABLES.contains(&info.address()) {
        match branch_target(engine, context) {
            Some(Target::Impossible) => {
                info = SignalInfo::fault(libc::SIGSEGV, libc::SI_KERNEL, 0, (PROTECTION, 0));
                thread.interrupted.branched_nowhere = true;
            }
            Some(Target::Nobodys) => return,
            None => {}
        }
    }
    let Some(located) = engine.code.cache.locate(pc) else { fault_of_ours(&info, context) };
    let mut registers = guest_registers(engine, context, &located);
    if is_test(engine, pc, located.fragment) || is_mark(engine, &located) {
        // An address without a shadow or a value: the guest's own access will tell.
        if let Some(flags) = shadow::kept_flags(&located.point.spills, context.registers[RAX]) {
            registers.flags = registers.flags & !ARITHMETIC | flags;
        }
        registers.flags &= !TRAP_FLAG;
        thread.interrupted.left = Some(located.left());
        return_to_dispatcher(context, (engine, thread), registers, EXIT_SUSPECT);
        return;
    }
    registers.flags &= !TRAP_FLAG;
    if info.address() == pc {
        info.set_address(registers.pc);
    }
    own::deny(&mut info);
    thread.interrupted.left = Some(located.left());
    thread.interrupted.fault = Some(info);
    return_to_dispatcher(context, (engine, thread), registers, EXIT_FAULT);
}

/// Where an indirect branch was about to go that no table has an entry for.
enum Target {
    /// To what is no address: the branch itself faults.
    Impossible,
    /// To an address beyond the guest's: it faults there. The load from the table has been given an
    /// answer.
    Nobodys,
}

/// Whether it was an indirect branch that looked behind its table, and why.
fn branch_target(engine: &Engine, context: &mut KernelContext) -> Option<Target> {
    let pc = context.registers[RIP];
    // SAFETY: translated code at least as long as the instruction that faulted.
    let code = unsafe { std::slice::from_raw_parts(pc as *const u8, 15) };
    let load = Decoder::with_ip(64, code, pc, DecoderOptions::NONE).decode();
    if load.code() != Code::Mov_r32_rm32 || load.memory_base() != Register::None {
        return None;
    }
    let (miss, return_miss) = engine.code.cache.misses();
    let (entries, miss) = match load.memory_displacement64() {
        layout::INDIRECT_TABLE => (layout::INDIRECT_ENTRIES, miss),
        layout::RETURN_TABLE => (layout::RETURN_ENTRIES, return_miss),
        _ => return None,
    };
    let register = ORDER[number(load.memory_index())? as usize];
    let beyond_user = context.registers[register] / entries as u64;
    if !processor::is_canonical(beyond_user << layout::USER_BITS, engine.config.quirks.address_bits)
    {
        return Some(Target::Impossible);
    }
    // The entry is loaded to where the index was.
    context.registers[register] = miss;
    context.registers[RIP] = load.next_ip();
    Some(Target::Nobodys)
}

/// The event buffer is full: moves the record under construction.
fn events_full(engine: &mut Engine) -> u64 {
    let Engine { observed, cpu, .. } = engine;
    observed.ring.as_mut().map_or(0, |ring: &mut Ring| ring.overflow(cpu))
}

/// The register that points to the record under construction, in the translation at `pc`.
fn record_register(engine: &Engine, pc: u64) -> Option<u8> {
    let fragment = engine.code.cache.locate(pc)?.fragment;
    engine.code.cache.fragment(fragment).record_register()
}

/// Whether the instruction at `pc` in translated code has an operand relative to a register.
fn is_relative_to(pc: u64, register: u8) -> bool {
    // SAFETY: translated code at least as long as the instruction that faulted.
    let code = unsafe { std::slice::from_raw_parts(pc as *const u8, 15) };
    let store = Decoder::with_ip(64, code, pc, DecoderOptions::NONE).decode();
    number(store.memory_base()) == Some(register)
}

/// Whether the instruction at `pc` tests an access of the guest's or looks at its value, and is not
/// that access itself.
fn is_test(engine: &Engine, pc: u64, fragment: u32) -> bool {
    let fragment = engine.code.cache.fragment(fragment);
    let (tests, values) = (fragment.test_registers(), fragment.value_source());
    if tests.is_none() && values.is_none() {
        return false;
    }
    // SAFETY: translated code at least as long as the instruction that faulted.
    let code = unsafe { std::slice::from_raw_parts(pc as *const u8, 15) };
    let test = Decoder::with_ip(64, code, pc, DecoderOptions::NONE).decode();
    let (base, index) = (number(test.memory_base()), number(test.memory_index()));
    let is_test = tests.is_some_and(|(shadow, scratch)| {
        [base, index].into_iter().flatten().any(|register| [shadow, scratch].contains(&register))
    });
    is_test || values.is_some() && base == values
}

/// Whether it is a record about the place where a translation starts that is being written: the
/// guest's first instruction has not begun. Only a stack that cannot be read faults there.
fn is_mark(engine: &Engine, located: &cache::Located) -> bool {
    let under_way = located.point.spills.iter().any(|spill| spill.slot == SLOT_RDX);
    located.point.index == 0
        && under_way
        && engine.code.cache.fragment(located.fragment).is_marked()
        && !located.boundary
}

/// A guest that has alignment checked must not notice that records are not aligned: if it was a
/// store to a record that was refused, makes it, and goes on behind it.
fn store_unaligned(engine: &mut Engine, context: &mut KernelContext) -> bool {
    let pc = context.registers[RIP];
    let Some(record) = record_register(engine, pc) else { return false };
    // SAFETY: translated code at least as long as the instruction that was refused.
    let code = unsafe { std::slice::from_raw_parts(pc as *const u8, 15) };
    let store = Decoder::with_ip(64, code, pc, DecoderOptions::NONE).decode();
    if number(store.memory_base()) != Some(record) {
        return false;
    }
    let offset = store.memory_displacement64();
    let end = context.registers[ORDER[record as usize]] + offset + 8;
    if engine.observed.ring.as_ref().is_some_and(|ring| end > ring.end()) {
        context.registers[ORDER[record as usize]] = events_full(engine);
    }
    let address = context.registers[ORDER[record as usize]] + offset;
    // SAFETY: inside the event buffer, checked above.
    unsafe {
        match number(store.op1_register()) {
            Some(from) => {
                (address as *mut u64).write_unaligned(context.registers[ORDER[from as usize]]);
            }
            None => (address as *mut u32).write_unaligned(store.immediate32()),
        }
    }
    context.registers[RIP] = store.next_ip();
    true
}

fn fault_of_ours(info: &SignalInfo, context: &KernelContext) -> ! {
    crate::runner::report::fault_of_ours_in_handler(
        info.number(),
        context.registers[RIP],
        info.address(),
    )
}
