//! A call from translated code into Rust and back, for calls that the engine follows: allocators, where
//! the [heap](super::screens::heap) is painted. Far shorter than a visit of the dispatcher.
//!
//! Translated code leaves what is needed in [`Follow`] and jumps to the trampoline, which puts the
//! guest's registers away and takes them back when [`follow`] has returned. Vector registers are stored
//! one by one; XSAVE and XRSTOR were a third of the time of a screened `bc`, and XGETBV and WRFSBASE a fifth
//! of what was left. If the upper halves are unused they are left so, which the guest could tell by XSAVE.
//!
//! Rules of the house: nothing here may drop a translation, as the thread is inside one; nothing may use
//! thread-local storage, as FS is the guest's; a signal that comes meanwhile makes the thread go on by
//! single steps behind the trampoline, as it would have in translated code.

use super::context;
use super::cpu::Cpu;
use super::translate::superblock::Marks;
use std::arch::global_asm;
use std::mem::offset_of;

/// What translated code tells of the call, and where registers are meanwhile.
#[repr(C)]
pub struct Follow {
    /// rdi, rsi, rdx, rcx, r8, r9.
    pub arguments: [u64; 6],
    /// The stack pointer.
    pub stack: u64,
    /// rax.
    pub value: u64,
    /// The return address, if a function is entered.
    pub back: u64,
    /// The guest's pc.
    pub place: u64,
    /// What is there, see [`what`].
    pub what: u64,
    /// Where translated code goes on.
    pub resume: u64,
    /// rax, rcx, rdx, rsi, rdi, r8 … r11, rsp, flags.
    saved: [u64; 11],
}

impl Follow {
    /// Nothing under way.
    pub const NONE: Self = Self {
        arguments: [0; 6],
        stack: 0,
        value: 0,
        back: 0,
        place: 0,
        what: 0,
        resume: 0,
        saved: [0; 11],
    };
}

/// Marks as translated code stores them.
pub fn what(marks: Marks) -> u32 {
    u32::from(marks.enters) | u32::from(marks.returns) << 1
}

extern "C" fn follow() {
    // SAFETY: called by translated code, whose thread has lent its context.
    let (engine, thread) = unsafe { context::lent() };
    let at = &engine.cpu.follow;
    let (pc, stack, value, back) = (at.place, at.stack, at.value, at.back);
    let (enters, returns) = (at.what & 1 != 0, at.what & 2 != 0);
    let marks = Marks { enters, returns, follows: true, ..Marks::default() };
    let arguments = at.arguments;
    engine.followed(thread, (pc, marks), (stack, value), (back, arguments));
}

unsafe extern "C" {
    fn whydunit_follow();
    fn whydunit_follow_leave();
    fn whydunit_follow_end();
}

/// Where translated code jumps to.
pub fn entry() -> u64 {
    whydunit_follow as *const () as u64
}

/// From here on the trampoline has looked whether anybody wants the thread; it can go back here.
pub fn leaving() -> std::ops::Range<u64> {
    whydunit_follow_leave as *const () as u64..whydunit_follow_end as *const () as u64
}

global_asm!(
    r#"
    .text
    .p2align 4
    .globl whydunit_follow
whydunit_follow:
    mov qword ptr [rip + {cpu} + {saved} + 0], rax
    mov qword ptr [rip + {cpu} + {saved} + 8], rcx
    mov qword ptr [rip + {cpu} + {saved} + 16], rdx
    mov qword ptr [rip + {cpu} + {saved} + 24], rsi
    mov qword ptr [rip + {cpu} + {saved} + 32], rdi
    mov qword ptr [rip + {cpu} + {saved} + 40], r8
    mov qword ptr [rip + {cpu} + {saved} + 48], r9
    mov qword ptr [rip + {cpu} + {saved} + 56], r10
    mov qword ptr [rip + {cpu} + {saved} + 64], r11
    mov qword ptr [rip + {cpu} + {saved} + 72], rsp
    mov rsp, qword ptr [rip + {cpu} + {host_stack}]
    pushfq
    pop qword ptr [rip + {cpu} + {saved} + 80]
    test dword ptr [rip + {cpu} + {saved} + 80], 0x40500
    jz 1f
    push 2                              // no AC, DF or TF while Rust runs
    popfq
1:
    sub rsp, 520                        // sixteen registers; the stack is aligned for a call
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vmovups ymmword ptr [rsp + 32 * \n], ymm\n
    .endr
    .irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vorps ymm0, ymm0, ymm\n
    .endr
    vextractf128 xmm0, ymm0, 1
    vptest xmm0, xmm0
    setnz byte ptr [rsp + 512]          // whether any upper half is in use
    vzeroupper
    call {follow}
    vzeroupper
    cmp byte ptr [rsp + 512], 0
    jne 2f
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movups xmm\n, xmmword ptr [rsp + 32 * \n]
    .endr
    jmp 3f
2:
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vmovups ymm\n, ymmword ptr [rsp + 32 * \n]
    .endr
3:
    add rsp, 520
    .globl whydunit_follow_leave
whydunit_follow_leave:                  // the signal handler comes back here with rsp = host_stack
    cmp qword ptr [rip + {attention}], 0
    je 4f
    or qword ptr [rip + {cpu} + {saved} + 80], 0x100
4:
    mov rdx, qword ptr [rip + {cpu} + {saved} + 16]
    mov rsi, qword ptr [rip + {cpu} + {saved} + 24]
    mov rdi, qword ptr [rip + {cpu} + {saved} + 32]
    mov r8,  qword ptr [rip + {cpu} + {saved} + 40]
    mov r9,  qword ptr [rip + {cpu} + {saved} + 48]
    mov r10, qword ptr [rip + {cpu} + {saved} + 56]
    mov r11, qword ptr [rip + {cpu} + {saved} + 64]
    mov eax, dword ptr [rip + {cpu} + {saved} + 80]
    test eax, 0x40500
    jnz 5f
    mov ecx, eax                        // POPFQ takes five times as long
    shr ecx, 11
    and ecx, 1
    mov ah, al
    mov al, cl
    add al, 0x7f                        // overflow, as it was
    sahf                                // the others
    mov rax, qword ptr [rip + {cpu} + {saved} + 0]
    mov rcx, qword ptr [rip + {cpu} + {saved} + 8]
    mov rsp, qword ptr [rip + {cpu} + {saved} + 72]
    jmp qword ptr [rip + {cpu} + {resume}]
5:
    mov rax, qword ptr [rip + {cpu} + {saved} + 0]
    mov rcx, qword ptr [rip + {cpu} + {saved} + 8]
    push qword ptr [rip + {cpu} + {saved} + 80]
    popfq
    mov rsp, qword ptr [rip + {cpu} + {saved} + 72]
    jmp qword ptr [rip + {cpu} + {resume}]
    .globl whydunit_follow_end
whydunit_follow_end:
    "#,
    cpu = sym super::cpu::CPU,
    saved = const offset_of!(Cpu, follow) + offset_of!(Follow, saved),
    resume = const offset_of!(Cpu, follow) + offset_of!(Follow, resume),
    host_stack = const Cpu::HOST_STACK,
    attention = sym super::cpu::ATTENTION,
    follow = sym follow,
);
