//! What processors do differently although their manuals agree: how wide an address is (paging with
//! four levels or five), and what a branch to no address leaves behind when it faults.
//!
//! Nothing here goes by the maker's name: the processor is asked once, by doing it. The engine then
//! follows [`Quirks`] as data, so that tests can have it follow those of another processor, and a
//! replay those of the one that the recording was made on.

use crate::sys::syscall;
use recording::Quirks;
use std::arch::global_asm;
use std::mem::zeroed;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The quirks of the processor that this process runs on.
pub fn here() -> Quirks {
    static HERE: OnceLock<Quirks> = OnceLock::new();
    *HERE.get_or_init(ask)
}

/// Whether an address of this many bits is one: its higher bits repeat the highest of these.
pub fn is_canonical(address: u64, bits: u32) -> bool {
    let unused = 64 - bits;
    (address as i64) << unused >> unused == address as i64
}

/// The end of what user space can have: the kernel keeps the last page of its half free.
pub fn user_end(bits: u32) -> u64 {
    (1 << (bits - 1)) - 4096
}

/// The first address that only the wider kind has.
const BEYOND_NARROW: u64 = 1 << 47;
/// No address of either kind.
const NO_ADDRESS: u64 = 0x4141_4141_4141_4141;
const PAGE_FAULT: u64 = 14;
const NARROW: u32 = 48;
const WIDE: u32 = 57;

/// Number of the trap that ended the last attempt.
static TRAP: AtomicU64 = AtomicU64::new(0);
/// What stands in the slot below the stack afterwards.
static SLOT: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    fn whydunit_attempt_jump(target: u64);
    fn whydunit_attempt_call(target: u64);
    fn whydunit_attempt_base(base: u64);
    fn whydunit_attempts();
    fn whydunit_attempt_over();
}

// The stack pointer is kept in rbx, where the handler finds it.
global_asm!(
    r#"
    .text
    .globl whydunit_attempts
whydunit_attempts:
    .globl whydunit_attempt_jump
whydunit_attempt_jump:
    push rbx
    mov rbx, rsp
    jmp rdi
    .globl whydunit_attempt_call
whydunit_attempt_call:
    push rbx
    mov rbx, rsp
    mov qword ptr [rsp - 8], 0
    call rdi
    .globl whydunit_attempt_base
whydunit_attempt_base:
    push rbx
    mov rbx, rsp
    rdgsbase rax
    wrgsbase rdi
    wrgsbase rax
    .globl whydunit_attempt_over
whydunit_attempt_over:
    pop rbx
    ret
    "#
);

fn ask() -> Quirks {
    // SAFETY: reads the auxiliary vector.
    let has_bases = unsafe { libc::getauxval(libc::AT_HWCAP2) } & 2 != 0;
    // SAFETY: plain data; the handler is installed for the attempts alone, which it ends, and
    // nothing but the slot below the stack and, for an instant, the unused base of GS changes.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = caught as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
        let (mut before, mut mask): (libc::sigaction, libc::sigset_t) = (zeroed(), zeroed());
        libc::sigaction(libc::SIGSEGV, &raw const action, &raw mut before);
        let segv: u64 = 1 << (libc::SIGSEGV - 1);
        syscall!(libc::SYS_rt_sigprocmask, libc::SIG_UNBLOCK, &raw const segv, &raw mut mask, 8);
        let wide = |trap| if trap == PAGE_FAULT { WIDE } else { NARROW };
        whydunit_attempt_jump(BEYOND_NARROW);
        let address_bits = wide(TRAP.load(Ordering::Relaxed));
        whydunit_attempt_call(NO_ADDRESS);
        let call_pushes = SLOT.load(Ordering::Relaxed) != 0;
        TRAP.store(0, Ordering::Relaxed);
        if has_bases {
            whydunit_attempt_base(BEYOND_NARROW);
        }
        let base_bits = if TRAP.load(Ordering::Relaxed) == 0 { WIDE } else { NARROW };
        syscall!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, 0, 8);
        libc::sigaction(libc::SIGSEGV, &raw const before, std::ptr::null_mut());
        Quirks { address_bits, base_bits, call_pushes }
    }
}

/// An attempt has faulted: notes how, and goes on behind it.
extern "C" fn caught(_: i32, _: *const libc::siginfo_t, context: *mut libc::ucontext_t) {
    // SAFETY: the kernel passes a valid context.
    let registers = unsafe { &mut (*context).uc_mcontext.gregs };
    let (start, over) =
        (whydunit_attempts as *const () as i64, whydunit_attempt_over as *const () as i64);
    let pc = registers[libc::REG_RIP as usize];
    if !(start..over).contains(&pc) && pc as u64 != BEYOND_NARROW {
        // Another thread's fault: it happens again without this handler.
        // SAFETY: the default action has no code of ours.
        unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
        return;
    }
    TRAP.store(registers[libc::REG_TRAPNO as usize] as u64, Ordering::Relaxed);
    let stack = registers[libc::REG_RBX as usize];
    // SAFETY: the attempt's own stack; the kernel has left the 128 bytes below it alone.
    SLOT.store(unsafe { *((stack - 8) as *const u64) }, Ordering::Relaxed);
    registers[libc::REG_RSP as usize] = stack;
    registers[libc::REG_RIP as usize] = over;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_as_wide_as_the_kernel_hands_them_out() {
        // Asked for a place above the narrow half, a kernel with five levels gives one there.
        // SAFETY: one fresh page, which is given back.
        let place = unsafe {
            let hint = (BEYOND_NARROW << 1) as *mut libc::c_void;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let place = libc::mmap(hint, 4096, libc::PROT_READ, flags, -1, 0);
            libc::munmap(place, 4096);
            place as u64
        };
        let wide = place >= BEYOND_NARROW;
        assert_eq!(here().address_bits, if wide { WIDE } else { NARROW });
        assert!(here().base_bits >= here().address_bits);
    }

    #[test]
    fn an_address_repeats_its_highest_bit() {
        for (address, narrow, wide) in [
            (0, true, true),
            (0x7fff_ffff_ffff, true, true),
            (0x8000_0000_0000, false, true),
            (0x00ff_ffff_ffff_ffff, false, true),
            (0x0100_0000_0000_0000, false, false),
            (0xfeff_ffff_ffff_ffff, false, false),
            (0xff00_0000_0000_0000, false, true),
            (0xffff_7fff_ffff_ffff, false, true),
            (0xffff_8000_0000_0000, true, true),
            (u64::MAX, true, true),
        ] {
            assert_eq!(is_canonical(address, NARROW), narrow, "{address:#x}");
            assert_eq!(is_canonical(address, WIDE), wide, "{address:#x}");
        }
    }
}
