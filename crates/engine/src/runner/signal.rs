//! Signals: the guest's dispositions and masks, the one handler that the kernel calls, and the
//! delivery to the guest's own handlers.
//!
//! The kernel holds the guest's mask (except that it never blocks faults) and its default and
//! ignored dispositions, so routing, pending sets and job control are the kernel's own. Where the
//! guest has a handler the kernel calls ours ([`handler`]), which notes the signal in the thread's
//! inbox and blocks all further ones until the dispatcher has delivered it ([`frame`]).

pub mod deliver;
pub mod frame;
pub mod handler;

use crate::sys::syscall;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// Signal by which a waiter asks for the baton. Linux never sends it on x86.
pub const KICK: i32 = libc::SIGSTKFLT;

/// Highest signal number.
pub const MAX: usize = 64;

/// A set of signals, as the kernel has it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(transparent)]
pub struct Mask(pub u64);

impl Mask {
    /// Whether the signal is in the set.
    pub fn has(self, signal: i32) -> bool {
        self.0 & bit(signal) != 0
    }

    /// What of the set the kernel may block.
    #[must_use]
    pub fn blockable(self) -> Self {
        Self(self.0 & !FAULTS & !bit(KICK))
    }

    /// What of the set the guest may block.
    #[must_use]
    pub fn without_unblockable(self) -> Self {
        Self(self.0 & !(bit(libc::SIGKILL) | bit(libc::SIGSTOP)))
    }
}

const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Whether the kernel can keep the signal pending while the guest blocks it.
pub fn can_be_pending(signal: i32) -> bool {
    !is_fault(signal) && signal != KICK
}

/// Signals that the processor raises.
const FAULTS: u64 = bit(libc::SIGSEGV)
    | bit(libc::SIGBUS)
    | bit(libc::SIGFPE)
    | bit(libc::SIGILL)
    | bit(libc::SIGTRAP)
    | bit(libc::SIGSYS);

/// Whether the processor can raise the signal.
pub fn is_fault(signal: i32) -> bool {
    FAULTS & bit(signal) != 0
}

/// A signal with everything the kernel said of it.
#[derive(Clone, Copy)]
pub struct SignalInfo {
    /// The kernel's `siginfo_t`, byte for byte.
    pub raw: [u8; 128],
    /// Trap number and error code of the processor, for faults.
    pub trap: (u64, u64),
    /// Faulting address of the processor (CR2).
    pub cr2: u64,
}

/// `si_code` of the trap after an instruction that was stepped.
pub const TRAP_TRACE: i32 = 2;

impl SignalInfo {
    /// A fault at an address, as the kernel would report it.
    pub fn fault(signal: i32, code: i32, address: u64, trap: (u64, u64)) -> Self {
        let mut raw = [0; 128];
        raw[0..4].copy_from_slice(&signal.to_le_bytes());
        raw[8..12].copy_from_slice(&code.to_le_bytes());
        raw[16..24].copy_from_slice(&address.to_le_bytes());
        Self { raw, trap, cr2: address }
    }

    /// Which signal.
    pub fn number(&self) -> i32 {
        i32::from_le_bytes(self.raw[0..4].try_into().expect("four bytes"))
    }

    /// Why (`si_code`).
    pub fn code(&self) -> i32 {
        i32::from_le_bytes(self.raw[8..12].try_into().expect("four bytes"))
    }

    /// Faulting address (`si_addr`).
    pub fn address(&self) -> u64 {
        u64::from_le_bytes(self.raw[16..24].try_into().expect("eight bytes"))
    }

    /// Who sent it (`si_pid`), where a process did.
    pub fn sender(&self) -> i32 {
        i32::from_le_bytes(self.raw[16..20].try_into().expect("four bytes"))
    }

    /// Puts another address in its place, where the kernel's was one of the cache.
    pub fn set_address(&mut self, address: u64) {
        self.raw[16..24].copy_from_slice(&address.to_le_bytes());
    }
}

/// Signals that have come and wait to be delivered. There can be no more than one of each that
/// the kernel never blocks for us, and one other.
#[derive(Clone, Copy, Default)]
pub struct Inbox([Option<SignalInfo>; 8]);

impl Inbox {
    /// Puts a signal in; one that waits already is not put in twice.
    pub fn put(&mut self, info: SignalInfo) {
        let waits = self.0.iter().flatten().any(|other| other.number() == info.number());
        if !waits && let Some(free) = self.0.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(info);
        }
    }

    /// Takes the first out that is in `wanted`.
    pub fn take(&mut self, wanted: Mask) -> Option<SignalInfo> {
        let found = |slot: &&mut Option<SignalInfo>| {
            slot.as_ref().is_some_and(|info| wanted.has(info.number()))
        };
        self.0.iter_mut().find(found)?.take()
    }

    /// Which signals wait.
    pub fn signals(&self) -> Mask {
        Mask(self.0.iter().flatten().fold(0, |all, info| all | bit(info.number())))
    }
}

/// The same, for a thread that its own signal handler may interrupt at any instruction.
#[derive(Default)]
pub struct SharedInbox([Slot; 8]);

/// A signal, if the slot is full.
#[derive(Default)]
struct Slot {
    state: AtomicU8,
    info: UnsafeCell<Option<SignalInfo>>,
}

const EMPTY: u8 = 0;
const BUSY: u8 = 1;
const FULL: u8 = 2;

// SAFETY: who has made a slot busy is the only one to touch its contents.
unsafe impl Sync for Slot {}

impl Slot {
    /// Changes what is in a slot that is in this state, or leaves it alone.
    fn change<T>(
        &self,
        from: u8,
        to: u8,
        change: impl FnOnce(&mut Option<SignalInfo>) -> T,
    ) -> Option<T> {
        self.state.compare_exchange(from, BUSY, Ordering::Acquire, Ordering::Relaxed).ok()?;
        // SAFETY: nobody else has made it busy.
        let result = change(unsafe { &mut *self.info.get() });
        self.state.store(to, Ordering::Release);
        Some(result)
    }

    /// Which signal is there. It may be gone when the answer is used.
    fn number(&self) -> Option<i32> {
        self.change(FULL, FULL, |info| info.as_ref().map(SignalInfo::number)).flatten()
    }
}

impl SharedInbox {
    /// Puts a signal in; one that waits already is not put in twice.
    pub fn put(&self, info: SignalInfo) {
        if !self.signals().has(info.number()) {
            let _ = self.0.iter().find_map(|slot| slot.change(EMPTY, FULL, |it| *it = Some(info)));
        }
    }

    /// Takes the first out.
    pub fn take(&self) -> Option<SignalInfo> {
        self.0.iter().find_map(|slot| slot.change(FULL, EMPTY, Option::take).flatten())
    }

    /// Which signals wait.
    pub fn signals(&self) -> Mask {
        Mask(self.0.iter().filter_map(Slot::number).fold(0, |all, number| all | bit(number)))
    }
}

/// The kernel's `struct sigaction`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Action {
    /// Handler, or one of the two below.
    pub handler: u64,
    /// `SA_*`.
    pub flags: u64,
    /// Where the handler returns to.
    pub restorer: u64,
    /// Blocked while the handler runs.
    pub mask: u64,
}

/// `SIG_DFL`.
pub const DEFAULT: u64 = 0;
/// `SIG_IGN`.
pub const IGNORE: u64 = 1;
const SA_RESTORER: u64 = 0x0400_0000;

impl Action {
    /// Whether the guest's own code handles the signal.
    pub fn is_handler(&self) -> bool {
        self.handler > IGNORE
    }

    /// Handler, flags, restorer, mask.
    pub fn words(&self) -> [u64; 4] {
        [self.handler, self.flags, self.restorer, self.mask]
    }

    /// Whether a flag is set.
    pub fn has(&self, flag: i32) -> bool {
        self.flags & flag as u32 as u64 != 0
    }
}

/// What the guest wants done about each signal.
#[derive(Clone)]
pub struct Actions([Action; MAX + 1]);

impl Actions {
    /// As inherited from whoever started the guest.
    pub fn inherited() -> Self {
        let mut actions = [Action::default(); MAX + 1];
        let ignored = Mask(IGNORED_FAULTS.load(Ordering::Relaxed));
        for (signal, action) in actions.iter_mut().enumerate().skip(1) {
            // SAFETY: the kernel writes one `Action`.
            unsafe { syscall!(libc::SYS_rt_sigaction, signal, 0, &raw mut *action, 8) };
            if is_fault(signal as i32) {
                // Watched by us already.
                let handler = if ignored.has(signal as i32) { IGNORE } else { DEFAULT };
                *action = Action { handler, ..Action::default() };
            }
        }
        Self(actions)
    }

    /// The action for a signal.
    pub fn get(&self, signal: i32) -> &Action {
        &self.0[signal as usize]
    }

    /// Changes an action and tells the kernel what it must know of it.
    pub fn set(&mut self, signal: i32, action: Action) {
        self.0[signal as usize] = action;
        install(signal, &action);
    }

    /// Takes over every signal that the engine itself must see.
    pub fn take_over(&self) {
        for signal in (1..=MAX as i32).filter(|signal| is_ours(*signal, self.get(*signal))) {
            install(signal, self.get(signal));
        }
    }
}

/// Faults that whoever started this process ignores.
static IGNORED_FAULTS: AtomicU64 = AtomicU64::new(0);

/// Until the engine takes over, a fault is always ours: says so, where the kernel would just end
/// the process, and whoever waits for it would blame the guest.
pub fn watch_own_faults() {
    for signal in (1..=MAX as i32).filter(|signal| is_fault(*signal)) {
        let action = Action {
            handler: handler::early_entry(),
            flags: SA_RESTORER | (libc::SA_SIGINFO | libc::SA_ONSTACK) as u64,
            restorer: handler::restorer(),
            mask: u64::MAX,
        };
        let mut before = Action::default();
        let (new, old) = (&raw const action, &raw mut before);
        // SAFETY: the kernel reads one action and writes the other; the handler is code of ours.
        unsafe { syscall!(libc::SYS_rt_sigaction, signal, new, old, 8) };
        if before.handler == IGNORE {
            IGNORED_FAULTS.fetch_or(bit(signal), Ordering::Relaxed);
        }
    }
}

/// Whether the engine must see the signal. What ends a guest that does nothing about it (SIGABRT, but also
/// SIGINT and SIGTERM) it sees first, so that it can tell where the guest was.
fn is_ours(signal: i32, guest: &Action) -> bool {
    let ends = guest.handler == DEFAULT && is_deadly(signal);
    is_fault(signal) || signal == KICK || guest.is_handler() || ends
}

/// Whether a signal ends a process that does nothing about it. Of SIGKILL nobody sees anything.
pub fn is_deadly(signal: i32) -> bool {
    !matches!(
        signal,
        libc::SIGCHLD
            | libc::SIGURG
            | libc::SIGWINCH
            | libc::SIGCONT
            | libc::SIGSTOP
            | libc::SIGTSTP
            | libc::SIGTTIN
            | libc::SIGTTOU
            | libc::SIGKILL
    )
}

/// Whether the kernel is not told what the guest wants: a replay hears nothing from outside.
static DEAF: AtomicBool = AtomicBool::new(false);

/// From now on only faults matter.
pub fn be_deaf() {
    DEAF.store(true, Ordering::Relaxed);
}

fn install(signal: i32, guest: &Action) {
    if DEAF.load(Ordering::Relaxed) && !is_fault(signal) {
        return;
    }
    let ours = is_ours(signal, guest);
    let kept = (libc::SA_RESTART | libc::SA_NOCLDSTOP | libc::SA_NOCLDWAIT) as u64;
    let mut action = Action { handler: guest.handler, ..Action::default() };
    action.flags = SA_RESTORER | guest.flags & kept;
    action.restorer = handler::restorer();
    if ours {
        action.handler = handler::entry();
        action.flags |= (libc::SA_SIGINFO | libc::SA_ONSTACK) as u64;
        if signal == KICK {
            action.flags |= libc::SA_RESTART as u64;
        }
        action.mask = u64::MAX;
    }
    // SAFETY: the kernel only reads the action; handler and restorer are code of ours.
    unsafe { syscall!(libc::SYS_rt_sigaction, signal, &raw const action, 0, 8) };
}

/// Makes the kernel block what the guest has blocked.
pub fn apply(mask: Mask) {
    if DEAF.load(Ordering::Relaxed) {
        return;
    }
    let mask = mask.blockable();
    // SAFETY: the kernel only reads the mask.
    unsafe { syscall!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, 0, 8) };
}

/// Gives a signal back to the kernel, to be pending until the guest unblocks it.
pub fn send_back(info: &SignalInfo, process: i32, tid: i32) {
    let raw = info.raw.as_ptr();
    // SAFETY: the kernel only reads the 128 bytes.
    unsafe { syscall!(libc::SYS_rt_tgsigqueueinfo, process, tid, info.number(), raw) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(number: i32) -> SignalInfo {
        SignalInfo::fault(number, 0, 0, (0, 0))
    }

    #[test]
    fn a_signal_that_waits_is_not_put_in_twice() {
        let inbox = SharedInbox::default();
        for number in [11, 5, 11] {
            inbox.put(signal(number));
        }
        assert_eq!(inbox.signals(), Mask(bit(11) | bit(5)));
        assert_eq!(inbox.take().map(|info| info.number()), Some(11));
        assert_eq!(inbox.take().map(|info| info.number()), Some(5));
        assert!(inbox.take().is_none());
        inbox.put(signal(11));
        assert_eq!(inbox.signals(), Mask(bit(11)));
    }

    #[test]
    fn a_full_inbox_keeps_what_it_has() {
        let inbox = SharedInbox::default();
        (1..=9).for_each(|number| inbox.put(signal(number)));
        let taken: Vec<i32> = std::iter::from_fn(|| inbox.take()).map(|it| it.number()).collect();
        assert_eq!(taken, [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    /// As a handler does that interrupts the dispatcher in the middle of a change.
    #[test]
    fn a_slot_that_is_being_changed_is_left_alone() {
        let inbox = SharedInbox::default();
        inbox.0[0].change(EMPTY, FULL, |info| {
            inbox.put(signal(7));
            *info = Some(signal(3));
        });
        assert_eq!(inbox.signals(), Mask(bit(3) | bit(7)));
        inbox.0[0].change(FULL, EMPTY, |info| {
            assert_eq!(inbox.take().map(|info| info.number()), Some(7));
            *info = None;
        });
        assert!(inbox.take().is_none());
    }
}
