//! The one block of processor state that translated code and Rust share, and the few lines of
//! assembly that go from one to the other.
//!
//! Only the thread that holds the baton is in translated code or in Rust, so one block at a fixed
//! address serves all threads: translated code reaches it with a plain 32-bit displacement, with
//! no segment register (both FS and GS stay the guest's). A thread's registers move between this
//! block and its `Thread` when the baton changes hands.
//!
//! ```text
//! enter_cache:  Rust ──► restore vector state, FS, flags, registers ──► translated code
//! exit_cache:   translated code ──► save registers, flags, FS, vector state ──► return to Rust
//! ```

use super::context::Context;
use super::follow::Follow;
use super::screens::allocations::UnderWay;
use super::screens::heap::LibraryCall;
use std::arch::global_asm;
use std::mem::offset_of;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};

/// General registers in the processor's own numbering: `rax rcx rdx rbx rsp rbp rsi rdi r8 … r15`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Registers {
    /// By hardware number.
    pub general: [u64; 16],
    /// RFLAGS.
    pub flags: u64,
    /// Base of FS.
    pub fs: u64,
    /// Program counter; only meaningful outside translated code.
    pub pc: u64,
}

/// Hardware numbers of the general registers.
#[allow(missing_docs)]
pub mod reg {
    pub const RAX: u8 = 0;
    pub const RCX: u8 = 1;
    pub const RDX: u8 = 2;
    pub const RBX: u8 = 3;
    pub const RSP: u8 = 4;
    pub const RBP: u8 = 5;
    pub const RSI: u8 = 6;
    pub const RDI: u8 = 7;
    pub const R8: u8 = 8;
    pub const R9: u8 = 9;
    pub const R10: u8 = 10;
    pub const R11: u8 = 11;
}

/// Number of places that translated code can keep guest registers in.
pub const SLOTS: usize = 12;

/// Cells that the countdown of ticks is spread over.
pub const CELLS: usize = 4;

/// The shared block. Offsets into it are baked into translated code.
#[repr(C, align(64))]
pub struct Cpu {
    /// The guest's registers while it is outside translated code.
    pub registers: Registers,
    /// Spilled guest registers while it is inside.
    pub slots: [u64; SLOTS],
    /// Target of the indirect branch under way.
    pub target: u64,
    /// Which exit was taken; index into the cache's exit table.
    pub exit: u64,
    /// The countdown of ticks, see [`super::clock`].
    pub ticks: [u64; CELLS],
    /// The low bits of a pc that index the table of indirect branches.
    pub low_mask: u64,
    /// Bits of a pc that index the second table.
    pub second_mask: u64,
    /// Bits of a pc that index the table of [`super::sites`].
    pub site_mask: u64,
    /// Next free byte of the event buffer.
    pub events: u64,
    /// Base of the shadow, see [`super::screens::shadow`].
    pub shadow: u64,
    /// The bit that every byte of the shadow has that is not zero, eight times.
    pub shadow_bits: u64,
    /// Bits of an address that index the table of [memory tags](super::screens::provenance).
    pub tag_mask: u64,
    /// The end of what user space can address.
    pub user_end: u64,
    /// A call that is followed.
    pub follow: Follow,
    /// A call that is entered in the table of [allocations](super::screens::allocations).
    pub allocation: UnderWay,
    /// The function with a contract that was called last.
    pub library: LibraryCall,
    /// Translated code to enter.
    pub entry: u64,
    /// Address of the running thread's XSAVE area.
    pub vector_state: u64,
    host_stack: u64,
    host_fs: u64,
}

impl Cpu {
    /// Offset of the stack that Rust code had when it entered translated code.
    pub const HOST_STACK: usize = offset_of!(Cpu, host_stack);
}

/// The block itself. Accessed by translated code, by the trampolines below, and through
/// [`CpuBlock`] by whoever holds the baton.
pub static mut CPU: Cpu = Cpu {
    registers: Registers { general: [0; 16], flags: 0, fs: 0, pc: 0 },
    slots: [0; SLOTS],
    target: 0,
    exit: 0,
    ticks: [0, 1, 1, 1],
    low_mask: crate::layout::INDIRECT_LOW,
    second_mask: (crate::layout::SECOND_ENTRIES as u64 - 1) << 2,
    site_mask: super::sites::MASK,
    events: 0,
    shadow: crate::layout::SHADOW_BASE,
    shadow_bits: u64::from_le_bytes([crate::layout::PAINTED; 8]),
    tag_mask: 0,
    user_end: crate::layout::USER_END,
    follow: Follow::NONE,
    allocation: UnderWay::NONE,
    library: LibraryCall::NONE,
    entry: 0,
    vector_state: 0,
    host_stack: 0,
    host_fs: 0,
};

/// Exit number that says "attention was wanted before any guest code ran".
pub const EXIT_ATTENTION: u64 = 0;

/// What the XSAVE family keeps of the guest: x87, SSE, AVX. The rest is hidden from it.
pub const VECTOR_MASK: u64 = 7;

/// Not zero when the dispatcher must look at the running thread before it goes on. Not part of the
/// block, as the signal handler sets it while Rust code uses the block.
pub static ATTENTION: AtomicU64 = AtomicU64::new(0);

/// Bits of a pc that index the tables of indirect branches and of returns.
#[repr(C, align(16))]
pub struct TableMasks {
    /// Of indirect branches.
    pub indirect: AtomicU64,
    /// Of returns.
    pub returns: AtomicU64,
}

/// What translated code indexes the tables by. Not part of the block, as the map of the guest's
/// memory narrows it.
pub static TABLE_MASKS: TableMasks = TableMasks {
    indirect: AtomicU64::new(crate::layout::INDIRECT_MASK),
    returns: AtomicU64::new(crate::layout::RETURN_MASK),
};

impl TableMasks {
    /// The guest has mapped memory behind the tables, where branches to addresses that no program
    /// can have would read.
    pub fn narrow(&self) {
        self.indirect.store(crate::layout::INDIRECT_LOW, Ordering::Relaxed);
        self.returns.store(crate::layout::RETURN_LOW, Ordering::Relaxed);
    }
}

/// The block, for Rust code. The engine has the only one, so who may use the block is who may use
/// the engine; no reference into it can live while translated code runs.
pub struct CpuBlock(());

impl CpuBlock {
    /// The one of this process.
    ///
    /// # Safety
    /// Must be called once, and the result be used by the holder of the baton only.
    pub unsafe fn claim() -> Self {
        Self(())
    }
}

impl Deref for CpuBlock {
    type Target = Cpu;

    #[inline]
    fn deref(&self) -> &Cpu {
        let block = &raw const CPU;
        // SAFETY: there is one `CpuBlock`, which is borrowed. Translated code and the signal
        // handler touch the block only while no Rust code of the holder borrows it (`context`).
        unsafe { &*block }
    }
}

impl DerefMut for CpuBlock {
    #[inline]
    fn deref_mut(&mut self) -> &mut Cpu {
        let block = &raw mut CPU;
        // SAFETY: as above.
        unsafe { &mut *block }
    }
}

/// The pc that the guest had when it was outside translated code last, for reports of our own faults.
pub fn last_pc() -> u64 {
    // SAFETY: a word that may be out of date; nobody relies on it.
    unsafe { (&raw const CPU.registers.pc).read() }
}

/// Address of a field of the block, for translated code.
pub fn field(offset: usize) -> u64 {
    (&raw const CPU) as u64 + offset as u64
}

/// Address of the mask of indirect branches, for translated code.
pub fn indirect_mask() -> u64 {
    (&raw const TABLE_MASKS.indirect) as u64
}

/// Address of the mask of returns, for translated code.
pub fn return_mask() -> u64 {
    (&raw const TABLE_MASKS.returns) as u64
}

/// Address of a spill slot, for translated code.
pub fn slot(index: u8) -> u64 {
    field(offset_of!(Cpu, slots) + 8 * index as usize)
}

/// Addresses of code that translated code or the signal handler must know.
#[derive(Clone, Copy)]
pub struct Landmarks {
    /// Where translated code goes to return to Rust.
    pub exit_cache: u64,
    /// From here …
    pub enter_start: u64,
    /// … to here, guest registers are being restored and `attention` is no longer looked at.
    pub enter_end: u64,
    /// Where the signal handler goes to return to Rust from translated code, with the guest's
    /// registers already in the block and the stack at [`host_stack`].
    pub to_dispatcher: u64,
    /// From here …
    pub syscall_start: u64,
    /// … to here (the `syscall` instruction itself), a guest system call has not happened yet.
    pub syscall_instruction: u64,
    /// Where an interrupted system call goes that has not happened.
    pub syscall_interrupted: u64,
}

unsafe extern "C" {
    fn whydunit_enter_cache();
    fn whydunit_exit_cache();
    fn whydunit_enter_start();
    fn whydunit_enter_end();
    fn whydunit_to_dispatcher();
    fn whydunit_syscall(arguments: *const [u64; 7], attention: *const u64) -> i64;
    fn whydunit_syscall_start();
    fn whydunit_syscall_instruction();
    fn whydunit_syscall_interrupted();
    fn whydunit_vector_save(area: *mut u8);
}

/// The addresses themselves.
pub fn landmarks() -> Landmarks {
    let at = |function: unsafe extern "C" fn()| function as *const () as u64;
    Landmarks {
        exit_cache: at(whydunit_exit_cache),
        enter_start: at(whydunit_enter_start),
        enter_end: at(whydunit_enter_end),
        to_dispatcher: at(whydunit_to_dispatcher),
        syscall_start: at(whydunit_syscall_start),
        syscall_instruction: at(whydunit_syscall_instruction),
        syscall_interrupted: at(whydunit_syscall_interrupted),
    }
}

/// Runs translated code at `entry` until it leaves the cache; the block's `exit` says where. All of
/// the context is borrowed, so that translated code, the calls that it makes and the signal handler
/// find nothing in use.
///
/// # Safety
/// `entry` must be the body of a live translation of the code at the guest's pc, and the block's
/// `vector_state` a valid XSAVE area.
pub unsafe fn enter_cache(context: &mut Context, entry: u64) {
    context.cpu().entry = entry;
    // SAFETY: the caller's promise; the trampoline keeps the C calling convention.
    unsafe { whydunit_enter_cache() }
}

/// Stack pointer that Rust code had when it entered translated code.
pub fn host_stack() -> u64 {
    // SAFETY: a word that only the trampoline into translated code writes.
    unsafe { (&raw const CPU.host_stack).read() }
}

/// The answer of [`guest_syscall`] when a signal came first and the call has not happened.
pub const NOT_STARTED: i64 = -0x10000;

/// Makes a system call that a signal may interrupt: when `attention` is set before the call
/// starts it is not made at all.
///
/// # Safety
/// As [`crate::sys::call`].
pub unsafe fn guest_syscall(number: u64, arguments: [u64; 6], attention: *const u64) -> i64 {
    let [a, b, c, d, e, f] = arguments;
    let all = [number, a, b, c, d, e, f];
    // SAFETY: the trampoline keeps the C calling convention; the call is the caller's promise.
    unsafe { whydunit_syscall(&all, attention) }
}

/// Notes the thread-local storage that Rust code is to run with.
pub fn adopt_host_fs() {
    let base: u64;
    // SAFETY: reads a register; the runner checked at start-up that FSGSBASE is there.
    unsafe { std::arch::asm!("rdfsbase {}", out(reg) base) };
    // SAFETY: there is no engine yet that could use the block.
    unsafe { (&raw mut CPU.host_fs).write(base) };
}

/// Base of GS, which is always the guest's.
pub fn gs_base() -> u64 {
    let base: u64;
    // SAFETY: reads a register; the runner checked at start-up that FSGSBASE is there.
    unsafe { std::arch::asm!("rdgsbase {}", out(reg) base) };
    base
}

/// Sets the base of GS.
pub fn set_gs_base(base: u64) {
    // SAFETY: GS is the guest's; Rust code does not use it.
    unsafe { std::arch::asm!("wrgsbase {}", in(reg) base) };
}

/// Stores the vector registers as they are now.
///
/// # Safety
/// `area` must be an XSAVE area, 64-byte aligned.
pub unsafe fn save_vector_state(area: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { whydunit_vector_save(area) }
}

global_asm!(
    r#"
    .text
    .p2align 4
    .globl whydunit_enter_cache
whydunit_enter_cache:
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    mov qword ptr [rip + {cpu} + {host_stack}], rsp
    .globl whydunit_enter_start
whydunit_enter_start:
    // A signal that came before this line has set `attention`; one that comes after it finds us
    // between the two labels and sends us back to this line.
    cmp qword ptr [rip + {attention}], 0
    jne 2f
    mov rcx, qword ptr [rip + {cpu} + {vector_state}]
    mov eax, {vector_mask}
    xor edx, edx
    xrstor64 [rcx]
    mov rax, qword ptr [rip + {cpu} + {fs}]
    wrfsbase rax
    push qword ptr [rip + {cpu} + {flags}]
    popfq
    mov rax, qword ptr [rip + {cpu} + {general} + 0]
    mov rcx, qword ptr [rip + {cpu} + {general} + 8]
    mov rdx, qword ptr [rip + {cpu} + {general} + 16]
    mov rbx, qword ptr [rip + {cpu} + {general} + 24]
    mov rsp, qword ptr [rip + {cpu} + {general} + 32]
    mov rbp, qword ptr [rip + {cpu} + {general} + 40]
    mov rsi, qword ptr [rip + {cpu} + {general} + 48]
    mov rdi, qword ptr [rip + {cpu} + {general} + 56]
    mov r8,  qword ptr [rip + {cpu} + {general} + 64]
    mov r9,  qword ptr [rip + {cpu} + {general} + 72]
    mov r10, qword ptr [rip + {cpu} + {general} + 80]
    mov r11, qword ptr [rip + {cpu} + {general} + 88]
    mov r12, qword ptr [rip + {cpu} + {general} + 96]
    mov r13, qword ptr [rip + {cpu} + {general} + 104]
    mov r14, qword ptr [rip + {cpu} + {general} + 112]
    mov r15, qword ptr [rip + {cpu} + {general} + 120]
    jmp qword ptr [rip + {cpu} + {entry}]
    .globl whydunit_enter_end
whydunit_enter_end:
2:
    mov qword ptr [rip + {cpu} + {exit}], {exit_attention}
    .globl whydunit_to_dispatcher
whydunit_to_dispatcher:                          // the signal handler comes here with rsp = host_stack
    mov rax, qword ptr [rip + {cpu} + {host_fs}]
    wrfsbase rax
    vzeroupper
    push 0x1f80
    ldmxcsr dword ptr [rsp]
    pop rax
    jmp 3f

    .p2align 4
    .globl whydunit_exit_cache
whydunit_exit_cache:
    mov qword ptr [rip + {cpu} + {general} + 0], rax
    mov qword ptr [rip + {cpu} + {general} + 8], rcx
    mov qword ptr [rip + {cpu} + {general} + 16], rdx
    mov qword ptr [rip + {cpu} + {general} + 24], rbx
    mov qword ptr [rip + {cpu} + {general} + 32], rsp
    mov qword ptr [rip + {cpu} + {general} + 40], rbp
    mov qword ptr [rip + {cpu} + {general} + 48], rsi
    mov qword ptr [rip + {cpu} + {general} + 56], rdi
    mov qword ptr [rip + {cpu} + {general} + 64], r8
    mov qword ptr [rip + {cpu} + {general} + 72], r9
    mov qword ptr [rip + {cpu} + {general} + 80], r10
    mov qword ptr [rip + {cpu} + {general} + 88], r11
    mov qword ptr [rip + {cpu} + {general} + 96], r12
    mov qword ptr [rip + {cpu} + {general} + 104], r13
    mov qword ptr [rip + {cpu} + {general} + 112], r14
    mov qword ptr [rip + {cpu} + {general} + 120], r15
    mov rsp, qword ptr [rip + {cpu} + {host_stack}]
    pushfq
    pop qword ptr [rip + {cpu} + {flags}]
    push 2                              // no AC, DF or TF while Rust runs
    popfq
    rdfsbase rax
    mov qword ptr [rip + {cpu} + {fs}], rax
    mov rax, qword ptr [rip + {cpu} + {host_fs}]
    wrfsbase rax
    mov rcx, qword ptr [rip + {cpu} + {vector_state}]
    mov eax, {vector_mask}
    xor edx, edx
    xsave64 [rcx]
    vzeroupper
    push 0x1f80
    ldmxcsr dword ptr [rsp]
    pop rax
3:
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    ret

    .p2align 4
    .globl whydunit_syscall
whydunit_syscall:                       // rdi: number and six arguments, rsi: attention word
    push rbx
    push r12
    mov r12, rdi
    mov rbx, rsi
    mov rax, qword ptr [r12]
    mov rdi, qword ptr [r12 + 8]
    mov rsi, qword ptr [r12 + 16]
    mov rdx, qword ptr [r12 + 24]
    mov r10, qword ptr [r12 + 32]
    mov r8,  qword ptr [r12 + 40]
    mov r9,  qword ptr [r12 + 48]
    .globl whydunit_syscall_start
whydunit_syscall_start:
    cmp qword ptr [rbx], 0
    jne whydunit_syscall_interrupted
    .globl whydunit_syscall_instruction
whydunit_syscall_instruction:
    syscall
    pop r12
    pop rbx
    ret
    .globl whydunit_syscall_interrupted
whydunit_syscall_interrupted:
    mov rax, {not_started}
    pop r12
    pop rbx
    ret

    .globl whydunit_vector_save
whydunit_vector_save:
    mov eax, {vector_mask}
    xor edx, edx
    xsave64 [rdi]
    ret
    "#,
    cpu = sym CPU,
    general = const offset_of!(Cpu, registers) + offset_of!(Registers, general),
    flags = const offset_of!(Cpu, registers) + offset_of!(Registers, flags),
    fs = const offset_of!(Cpu, registers) + offset_of!(Registers, fs),
    exit = const offset_of!(Cpu, exit),
    entry = const offset_of!(Cpu, entry),
    vector_state = const offset_of!(Cpu, vector_state),
    attention = sym ATTENTION,
    host_stack = const offset_of!(Cpu, host_stack),
    host_fs = const offset_of!(Cpu, host_fs),
    vector_mask = const VECTOR_MASK,
    exit_attention = const EXIT_ATTENTION,
    not_started = const NOT_STARTED,
);
