//! Standing in for the guest: whoever started this tool sees it end, stop and continue when the
//! guest does, and what they send to it reaches the guest.
//!
//! All signals that matter are blocked while a guest runs and taken one at a time, so nothing here
//! runs in a signal handler.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

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

    /// Passes signals on until the guest has ended; the status that `waitpid` gave. A guest that takes
    /// longer than it may is ended.
    pub fn wait(
        &self,
        guest: i32,
        follow_stops: bool,
        timeout: Option<Duration>,
    ) -> io::Result<i32> {
        let stops = if follow_stops { libc::WUNTRACED } else { 0 };
        let mut limit = timeout.map(Limit::of);
        let watched = Watched::of(guest, &self.taken)?;
        loop {
            while let Some(status) = changed(guest, stops)? {
                if libc::WIFSTOPPED(status) {
                    self.stop(libc::WSTOPSIG(status));
                } else {
                    return Ok(status);
                }
            }
            if let Some(limit) = &mut limit {
                limit.enforce(guest);
            }
            if let Some(signal) = watched.next(limit.as_ref().map(Limit::left))
                && signal.ssi_signo as i32 != libc::SIGCHLD
            {
                pass_on(guest, &signal);
            }
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

/// What is waited for: signals, and the guest's end. The end has a descriptor of its own because SIGCHLD does
/// not tell it for certain: where several guests run at once, in threads of this process, any of these threads
/// may take the one signal that stands for the ends of all.
struct Watched {
    end: OwnedFd,
    signals: OwnedFd,
}

impl Watched {
    fn of(guest: i32, taken: &libc::sigset_t) -> io::Result<Self> {
        const FLAGS: i32 = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: plain calls; the kernel reads the set.
        let made = unsafe {
            [
                libc::syscall(libc::SYS_pidfd_open, guest, 0) as i32,
                libc::signalfd(-1, std::ptr::from_ref(taken), FLAGS),
            ]
        };
        let failed = io::Error::last_os_error();
        // SAFETY: a descriptor that was just made has no other owner.
        let own = |made: i32| (made >= 0).then(|| unsafe { OwnedFd::from_raw_fd(made) });
        match made.map(own) {
            [Some(end), Some(signals)] => Ok(Self { end, signals }),
            _ => Err(failed),
        }
    }

    /// Waits until there is something to look at, for so much time at most; the next signal, if there is one.
    fn next(&self, within: Option<Duration>) -> Option<libc::signalfd_siginfo> {
        let within = within.map(|time| libc::timespec {
            tv_sec: time.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        let within = within.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let one =
            |of: &OwnedFd| libc::pollfd { fd: of.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut both = [one(&self.end), one(&self.signals)];
        const SIZE: usize = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes the two entries and at most one `signalfd_siginfo`, which is plain data, and
        // reads the time, if there is one.
        unsafe {
            libc::ppoll(both.as_mut_ptr(), 2, within, std::ptr::null());
            let mut info: libc::signalfd_siginfo = zeroed();
            let read = libc::read(self.signals.as_raw_fd(), (&raw mut info).cast(), SIZE);
            (read == SIZE as isize).then_some(info)
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.inherited.restore();
    }
}

/// The signal that ends a guest whose time is up: the one by which the kernel says so, and which hardly any
/// program handles.
pub const TIME_IS_UP: i32 = libc::SIGXCPU;

/// After this, a guest that handles or blocks that signal is killed.
const GRACE: Duration = Duration::from_secs(5);

/// How long the guest may take.
struct Limit {
    at: Instant,
    /// What it is sent then.
    signal: i32,
}

impl Limit {
    fn of(timeout: Duration) -> Self {
        let now = Instant::now();
        Self { at: now.checked_add(timeout).unwrap_or(now), signal: TIME_IS_UP }
    }

    fn left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// Ends the guest and its children, if it is time.
    fn enforce(&mut self, guest: i32) {
        if self.left() > Duration::ZERO {
            return;
        }
        for process in descendants(guest).into_iter().chain([guest]) {
            // SAFETY: sends a signal; a process that has ended meanwhile is no error.
            unsafe { libc::kill(process, self.signal) };
        }
        (self.at, self.signal) = (Instant::now() + GRACE, libc::SIGKILL);
    }
}

/// The processes below one.
fn descendants(process: i32) -> Vec<i32> {
    let mut found = Vec::new();
    let mut open = vec![process];
    while let Some(parent) = open.pop() {
        let threads = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten();
        for thread in threads.flatten() {
            let list = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children = list.split_whitespace().filter_map(|number| number.parse::<i32>().ok());
            let children: Vec<i32> = children.filter(|child| !found.contains(child)).collect();
            open.extend(&children);
            found.extend(children);
        }
    }
    found
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

fn pass_on(guest: i32, info: &libc::signalfd_siginfo) {
    let signal = info.ssi_signo as i32;
    let value = libc::sigval { sival_ptr: info.ssi_ptr as *mut libc::c_void };
    if is_keyboard(signal) && info.ssi_code == libc::SI_KERNEL || info.ssi_pid as i32 == guest {
        return; // the guest, in the same process group, has had it too
    }
    if signal == libc::SIGCONT && !is_stopped(guest) {
        return;
    }
    // SAFETY: the guest has not been waited for, so the number is still its.
    unsafe {
        if info.ssi_code == libc::SI_QUEUE {
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
