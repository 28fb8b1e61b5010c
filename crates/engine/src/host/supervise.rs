//! Standing in for the guest: whoever started this tool sees it end, stop and continue when the
//! guest does, and what they send to it reaches the guest.
//!
//! All signals that matter are blocked while a guest runs and taken one at a time, so nothing here
//! runs in a signal handler.

use std::io;
use std::mem::zeroed;
use std::ptr::null_mut;

/// Signals that stay as they are: faults of our own, what cannot be blocked, and the terminal's
/// complaints about a background process.
const LEFT_ALONE: [i32; 12] = [
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
    libc::SIGPIPE,
    libc::SIGTTIN,
    libc::SIGTTOU,
];

/// What the guest is to inherit, noted before this process changes anything.
#[derive(Clone, Copy)]
pub struct Inherited {
    mask: libc::sigset_t,
    child_action: libc::sigaction,
}

impl Inherited {
    /// Gives it back. Only makes async-signal-safe calls, for use between `fork` and `execve`.
    pub fn restore(&self) {
        // SAFETY: both were read from the kernel and are only read.
        unsafe {
            libc::sigaction(libc::SIGCHLD, &raw const self.child_action, null_mut());
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask, null_mut());
        }
    }
}

/// This process while it stands in for a guest. Signals that come when it has ended are its own.
pub struct Supervisor {
    taken: libc::sigset_t,
    inherited: Inherited,
}

impl Supervisor {
    /// Starts taking signals.
    pub fn new() -> Self {
        // SAFETY: the sets and actions are plain data that libc fills in; the default action for
        // SIGCHLD makes sure that the guest's end can be waited for.
        unsafe {
            let mut taken: libc::sigset_t = zeroed();
            libc::sigemptyset(&raw mut taken);
            for signal in (1..=libc::SIGRTMAX()).filter(|signal| !LEFT_ALONE.contains(signal)) {
                libc::sigaddset(&raw mut taken, signal);
            }
            let mut inherited = Inherited { mask: zeroed(), child_action: zeroed() };
            let mut action: libc::sigaction = zeroed();
            action.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(libc::SIGCHLD, &raw const action, &raw mut inherited.child_action);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const taken, &raw mut inherited.mask);
            Self { taken, inherited }
        }
    }

    /// What the guest is to inherit.
    pub fn inherited(&self) -> Inherited {
        self.inherited
    }

    /// Passes signals on until the guest has ended; the status that `waitpid` gave.
    pub fn wait(&self, guest: i32, follow_stops: bool) -> io::Result<i32> {
        let stops = if follow_stops { libc::WUNTRACED } else { 0 };
        loop {
            while let Some(status) = changed(guest, stops)? {
                if libc::WIFSTOPPED(status) {
                    self.stop(libc::WSTOPSIG(status));
                } else {
                    return Ok(status);
                }
            }
            if let Some(info) = self.next()
                && info.si_signo != libc::SIGCHLD
            {
                pass_on(guest, &info);
            }
        }
    }

    fn next(&self) -> Option<libc::siginfo_t> {
        // SAFETY: the kernel reads the set and writes one `siginfo_t`, which is plain data.
        unsafe {
            let mut info: libc::siginfo_t = zeroed();
            (libc::sigwaitinfo(&raw const self.taken, &raw mut info) > 0).then_some(info)
        }
    }

    /// Stops as the guest has, so that a shell sees it.
    fn stop(&self, signal: i32) {
        // SAFETY: raises a signal whose action is to stop, and goes on when continued.
        unsafe {
            let mut only: libc::sigset_t = zeroed();
            libc::sigemptyset(&raw mut only);
            libc::sigaddset(&raw mut only, signal);
            libc::raise(signal);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const only, null_mut());
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const self.taken, null_mut());
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.inherited.restore();
    }
}

/// How the guest has changed since the last time, if it has.
fn changed(guest: i32, stops: i32) -> io::Result<Option<i32>> {
    let mut status = 0;
    // SAFETY: the kernel writes one word.
    match unsafe { libc::waitpid(guest, &raw mut status, libc::WNOHANG | stops) } {
        0 => Ok(None),
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(Some(status)),
    }
}

fn pass_on(guest: i32, info: &libc::siginfo_t) {
    let signal = info.si_signo;
    // SAFETY: every signal that is passed on has these fields, or zeros in their place.
    let (sender, value) = unsafe { (info.si_pid(), info.si_value()) };
    if is_keyboard(signal) && info.si_code == libc::SI_KERNEL || sender == guest {
        return; // the guest, in the same process group, has had it too
    }
    if signal == libc::SIGCONT && !is_stopped(guest) {
        return;
    }
    // SAFETY: the guest has not been waited for, so the number is still its.
    unsafe {
        if info.si_code == libc::SI_QUEUE {
            libc::sigqueue(guest, signal, value);
        } else {
            libc::kill(guest, signal);
        }
    }
}

/// Whether the terminal sends it to everyone in the foreground.
fn is_keyboard(signal: i32) -> bool {
    matches!(signal, libc::SIGINT | libc::SIGQUIT | libc::SIGTSTP | libc::SIGWINCH | libc::SIGCONT)
}

/// A SIGCONT to the whole process group has already continued the guest.
fn is_stopped(guest: i32) -> bool {
    let stat = std::fs::read(format!("/proc/{guest}/stat")).unwrap_or_default();
    let after_name = stat.iter().rposition(|byte| *byte == b')').unwrap_or_default();
    stat.get(after_name + 2).is_some_and(|state| *state == b'T')
}
