//! Messages of runners, received by a thread of the host; and what becomes of guests that outlive it.

use super::Resolve;
use super::supervise::Supervisor;
use crate::listen::{Remote, Rings};
use crate::log_listen::{self, EventSinks};
use crate::report::{CrashReport, Joiner, LogOrigin, Message, ModuleMap, ProcessReplay};
use crate::ring::Order;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// As long as this is open the runners live.
#[derive(Default)]
pub struct Lifeline(Mutex<Option<OwnedFd>>);

impl Lifeline {
    /// The write end of a pipe that all runners hold the read end of.
    pub fn new(end: OwnedFd) -> Self {
        Self(Mutex::new(Some(end)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<OwnedFd>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends every process of the guest.
    fn cut(&self) {
        drop(self.lock().take());
    }
}

/// The messages of all runners of a job.
#[derive(Default)]
pub struct RunnerMessages {
    /// Faults of processes that signals ended.
    pub crashes: Vec<CrashReport>,
    /// Things worth telling the user.
    pub notes: Vec<String>,
    /// A fault of our own, and where the guest was.
    pub fault: Option<(String, u64)>,
    /// Events at which schedules of recorded processes decided.
    pub events: u64,
    /// Why nothing more is recorded, or why a recording cannot be read.
    pub refused: Option<String>,
    /// Why what is asked cannot be had of this program.
    pub unfit: Option<String>,
    /// How replays ended.
    pub replayed: Vec<ProcessReplay>,
    joiner: Joiner,
    remotes: HashMap<i32, Remote>,
}

/// What is done about what is received: finds the functions that a plan names.
pub struct Finder {
    /// What to cut when nothing more can be recorded: whoever waited for the process that it ended
    /// in would wait for ever, and nobody would hear why.
    pub lifeline: Option<Arc<Lifeline>>,
    /// Looks into files.
    pub resolve: Option<Resolve>,
    /// What to look for.
    pub names: Vec<String>,
}

impl Finder {
    fn find(&self, process: i32, map: &ModuleMap) -> Vec<(u64, String)> {
        self.resolve.as_ref().map_or(Vec::new(), |resolve| (resolve.0)(process, map, &self.names))
    }
}

impl RunnerMessages {
    /// Nothing more can be recorded. The first reason counts: others may follow from it.
    fn refuse(&mut self, why: String, finder: &Finder) {
        self.refused.get_or_insert(why);
        if let Some(lifeline) = &finder.lifeline {
            lifeline.cut();
        }
    }

    fn line(&mut self, line: &[u8], events: &mut Events<'_>, finder: &Finder) {
        let line = String::from_utf8_lossy(line);
        match self.joiner.add(&line) {
            Ok(None) => {}
            Ok(Some(Message::Ring { process, parent, number })) => {
                match events.take_up(process, parent, number) {
                    Ok(remote) => self.remotes.extend(remote.map(|remote| (process, remote))),
                    Err(error) => {
                        self.notes.push(format!("events of process {process} are lost: {error}"));
                    }
                }
            }
            Ok(Some(Message::Module { process, map })) => {
                if let Some(remote) = self.remotes.get(&process) {
                    remote.answer(Order::Functions(finder.find(process, &map)));
                }
            }
            Ok(Some(Message::Log { process, descriptor, origin })) => {
                // One that was killed before it had a log has nothing to say.
                if let Err(error) = events.take_up_log(process, descriptor, origin)
                    && !log_listen::is_gone(process)
                {
                    self.refuse(format!("the log of process {process} is lost: {error}"), finder);
                }
            }
            Ok(Some(Message::Events(count))) => self.events += count,
            Ok(Some(Message::Refused(why))) => self.refuse(why, finder),
            Ok(Some(Message::Unfit(why))) => {
                self.unfit.get_or_insert(why);
                if let Some(lifeline) = &finder.lifeline {
                    lifeline.cut();
                }
            }
            Ok(Some(Message::Replayed(replay))) => self.replayed.push(replay),
            Ok(Some(Message::Crash(report))) => self.crashes.push(*report),
            Ok(Some(Message::Fault { what, pc })) => self.fault = Some((what, pc)),
            Ok(Some(Message::Note(text))) => self.notes.push(text),
            Err(_) => self.notes.push(line.into_owned()),
        }
    }
}

/// Where events go: who consumes them, and the threads that bring them there.
pub struct Events<'a> {
    sinks: EventSinks<'a>,
    rings: Option<Arc<Rings>>,
    feeding: Vec<JoinHandle<()>>,
}

impl<'a> Events<'a> {
    /// No events yet.
    pub fn new(sinks: EventSinks<'a>, rings: Option<Arc<Rings>>) -> Self {
        Self { sinks, rings, feeding: Vec::new() }
    }

    fn take_up_log(&mut self, process: i32, descriptor: i32, origin: LogOrigin) -> io::Result<()> {
        if let Some(logs) = &mut self.sinks.logs {
            let sink = logs(process, origin);
            self.feeding.push(log_listen::attach(process, descriptor, sink)?);
        }
        Ok(())
    }

    fn take_up(
        &mut self,
        process: i32,
        parent: Option<i32>,
        number: u64,
    ) -> io::Result<Option<Remote>> {
        let Some(rings) = &self.rings else { return Ok(None) };
        let consumer = (self.sinks.events)(process);
        let (thread, remote) = rings.take_up(number, process, parent, consumer)?;
        self.feeding.push(thread);
        Ok(Some(remote))
    }

    /// Brings the last of them; those of processes that live on end here. Whether all went well.
    fn finish(self) -> bool {
        if let Some(rings) = &self.rings {
            rings.about_to_leave();
        }
        let panics = self.feeding.into_iter().filter_map(|thread| thread.join().err()).count();
        if let Some(rings) = &self.rings {
            rings.leave();
        }
        panics == 0
    }
}

/// A thread that listens.
pub struct Listener<'scope> {
    thread: ScopedJoinHandle<'scope, (RunnerMessages, Option<OwnedFd>)>,
    stop: OwnedFd,
    /// Whether it listens on to processes that are recorded, until the last of them has ended.
    patient: Arc<AtomicBool>,
}

/// How long signals are held back for processes that are about to end anyway.
const SOON: Duration = Duration::from_secs(1);

impl<'scope> Listener<'scope> {
    /// Listens to `messages` until all who could write are gone, or nothing is left to read after
    /// the other end of `stopped` has been closed.
    pub fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        events: Events<'env>,
        finder: Finder,
        messages: OwnedFd,
        stop: OwnedFd,
        stopped: OwnedFd,
    ) -> Self {
        let patient = Arc::new(AtomicBool::new(true));
        let heeds = patient.clone();
        let thread = scope.spawn(move || listen(events, &finder, messages, &stopped, &heeds));
        Self { thread, stop, patient }
    }

    /// What has been said so far. Processes that the guest has left behind keep the descriptor
    /// open that they speak to: it comes back too. Those that are recorded are waited for, unless the
    /// guest was `killed`; as that can take any time, signals are this process's own then.
    pub fn finish(self, supervisor: Supervisor, killed: bool) -> (RunnerMessages, Option<OwnedFd>) {
        self.patient.store(!killed, Ordering::Release);
        drop(self.stop);
        let begun = Instant::now();
        while !self.thread.is_finished() && begun.elapsed() < SOON {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(supervisor);
        self.thread.join().unwrap_or_default()
    }
}

/// Listens in this thread.
pub fn listen(
    mut events: Events<'_>,
    finder: &Finder,
    messages: OwnedFd,
    stopped: &OwnedFd,
    patient: &AtomicBool,
) -> (RunnerMessages, Option<OwnedFd>) {
    let (mut received, open) = receive(&mut events, finder, messages, stopped, patient);
    if !events.finish() {
        received.fault = Some(("a consumer of events panicked".into(), 0));
    }
    (received, open)
}

fn receive(
    events: &mut Events<'_>,
    finder: &Finder,
    messages: OwnedFd,
    stopped: &OwnedFd,
    patient: &AtomicBool,
) -> (RunnerMessages, Option<OwnedFd>) {
    let mut received = RunnerMessages::default();
    let mut rest = Vec::new();
    let mut stopping = false;
    loop {
        // A child that is recorded does not go on before its log is taken up.
        let waits = !stopping || events.sinks.logs.is_some() && patient.load(Ordering::Acquire);
        let (message, stop) = ready(&messages, (!stopping).then_some(stopped), waits);
        if message {
            if !read_some(&messages, &mut rest) {
                return (received, None);
            }
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                received.line(&rest[..end], events, finder);
                rest.drain(..=end);
            }
        } else if stopping {
            return (received, Some(messages));
        }
        stopping |= stop;
    }
}

/// Which of the two can be read.
fn ready(messages: &OwnedFd, stopped: Option<&OwnedFd>, waits: bool) -> (bool, bool) {
    let entry = |descriptor| libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    let mut entries = [entry(messages.as_raw_fd()), entry(stopped.map_or(-1, AsRawFd::as_raw_fd))];
    let timeout = if waits { -1 } else { 0 };
    // SAFETY: the kernel reads and writes two entries.
    unsafe { libc::poll(entries.as_mut_ptr(), 2, timeout) };
    (entries[0].revents != 0, entries[1].revents != 0)
}

/// Reads what there is; false at the end.
fn read_some(descriptor: &OwnedFd, into: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 16 << 10];
    // SAFETY: the kernel writes at most the buffer's length.
    let got =
        unsafe { libc::read(descriptor.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    if got < 0 {
        return io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
    }
    into.extend_from_slice(&buffer[..got as usize]);
    got > 0
}

/// Lets processes that the guest has left behind live on, as they would without this tool: a
/// small process keeps their lifeline and takes their messages until the last of them has ended.
pub fn leave_behind(messages: &OwnedFd, lifeline: &Lifeline) {
    let lifeline = lifeline.lock();
    let Some(lifeline) = lifeline.as_ref() else { return };
    // SAFETY: only async-signal-safe calls follow in the child, which shares nothing it changes.
    unsafe {
        if libc::fork() != 0 {
            return;
        }
        libc::setsid();
        libc::chdir(c"/".as_ptr());
        let high = libc::dup(lifeline.as_raw_fd());
        libc::dup2(messages.as_raw_fd(), 0);
        libc::dup2(high, 1);
        libc::syscall(libc::SYS_close_range, 2, u32::MAX, 0);
        let mut buffer = [0u8; 4096];
        while libc::read(0, buffer.as_mut_ptr().cast(), buffer.len()) > 0 {}
        libc::_exit(0)
    }
}
