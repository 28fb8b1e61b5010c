//! A replaying runner and the copies of it that checkpoints are, to be asked for moments.

use super::RunError;
use super::launch::{Launch, Launched, pipe};
use super::listen::{Events, Finder, RunnerMessages, listen};
use super::supervise::Supervisor;
use crate::config::{Config, Replaying};
use crate::control::{Budget, Command as Request, Diverted, Goal, Reply, Stopped};
use crate::listen::Rings;
use crate::log_listen::{EventSinks, LogSink};
use crate::processor;
use crate::report::LogOrigin;
use events::{Consumer, Discard, Plan, Process};
use recording::log::ThreadData;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Child;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

type Consumers = Arc<Mutex<Waiting>>;

/// Who waits for what a process is about to say.
#[derive(Default)]
struct Waiting {
    events: HashMap<i32, Box<dyn Consumer>>,
    logs: HashMap<i32, Box<dyn LogSink>>,
}

/// A replay that can be asked for moments.
pub struct Replayer {
    first: Option<ReplayProcess>,
    consumers: Consumers,
    listener: Option<JoinHandle<RunnerMessages>>,
    child: Child,
    /// As long as this is open the runners live.
    lifeline: Option<OwnedFd>,
}

/// A process that stands still somewhere in the replay.
pub struct ReplayProcess {
    socket: OwnedFd,
    process: i32,
    consumers: Consumers,
}

impl Replayer {
    /// Starts the replay of the last of `processes`, which stands still at its beginning.
    pub fn start(file: &File, processes: Vec<u32>) -> Result<Self, RunError> {
        let (ours, theirs) = sockets().map_err(|error| RunError::System("make a socket", error))?;
        let rings =
            Rings::new().map_err(|error| RunError::System("make room for events", error))?;
        let plan = Plan::default().with_ticks(true);
        let mut launch = Launch::new(Config { plan, ..Config::new(processor::here()) })?;
        launch.config.rings = launch.hand(rings.file())?;
        launch.config.replaying = Some(Replaying {
            file: launch.hand(file)?,
            processes,
            tree: false,
            outputs: None,
            control: Some(launch.hand(&theirs)?),
        });
        let inherited = Supervisor::new().inherited();
        let Launched { child, messages, lifeline } =
            launch.start((OsStr::new("replay"), &[]), [], inherited)?;
        drop(theirs);
        let consumers = Consumers::default();
        let listener = std::thread::spawn({
            let consumers = consumers.clone();
            move || collect(messages, rings, &consumers)
        });
        let process = child.id() as i32;
        let first = ReplayProcess { socket: ours, process, consumers: consumers.clone() };
        let mut replayer = Self {
            first: None,
            consumers,
            listener: Some(listener),
            child,
            lifeline: Some(lifeline),
        };
        // Until it stands still it cannot be asked anything.
        match first.receive() {
            Ok(_) => replayer.first = Some(first),
            Err(error) => return Err(replayer.failure(&error)),
        }
        Ok(replayer)
    }

    /// The process at the beginning of the log.
    pub fn take_first(&mut self) -> Option<ReplayProcess> {
        self.first.take()
    }

    /// What the runners had to say when they could not be asked.
    pub fn failure(&mut self, error: &io::Error) -> RunError {
        let received = self.end();
        if let Some((what, pc)) = received.fault {
            return RunError::Fault { what, pc };
        }
        if let Some(why) = received.unfit {
            return RunError::Unfit(why);
        }
        match received.refused {
            Some(why) => RunError::Unreadable(why),
            None => RunError::Fault { what: format!("a replay does not answer: {error}"), pc: 0 },
        }
    }

    fn end(&mut self) -> RunnerMessages {
        self.first = None;
        *lock(&self.consumers) = Waiting::default();
        drop(self.lifeline.take());
        // It may have ended before; either way it is gone then.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let listener = self.listener.take();
        listener.and_then(|listener| listener.join().ok()).unwrap_or_default()
    }
}

impl Drop for Replayer {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock(consumers: &Consumers) -> MutexGuard<'_, Waiting> {
    consumers.lock().unwrap_or_else(PoisonError::into_inner)
}

fn collect(messages: OwnedFd, rings: Arc<Rings>, consumers: &Consumers) -> RunnerMessages {
    let mut make = |process: i32| -> Box<dyn Consumer> {
        lock(consumers).events.remove(&process).unwrap_or_else(|| Box::new(Discard::default()))
    };
    let mut logs = |process: i32, _: LogOrigin| -> Box<dyn LogSink> {
        lock(consumers).logs.remove(&process).unwrap_or_else(|| Box::new(Nowhere))
    };
    let sinks = EventSinks { events: &mut make, logs: Some(&mut logs) };
    let events = Events::new(sinks, Some(rings));
    let finder = Finder { lifeline: None, resolve: None, names: Vec::new() };
    // Nobody stops listening before the last runner has gone.
    let Ok((stopped, _open)) = pipe("make a pipe") else { return RunnerMessages::default() };
    listen(events, &finder, messages, &stopped, &AtomicBool::new(false)).0
}

/// A log that nobody wants.
struct Nowhere;

impl LogSink for Nowhere {
    fn bytes(&mut self, _: &[u8]) -> bool {
        true
    }

    fn end(&mut self) {}
}

/// Says when a log has ended.
struct EndingLog {
    inner: Box<dyn LogSink>,
    done: Sender<()>,
}

impl LogSink for EndingLog {
    fn bytes(&mut self, bytes: &[u8]) -> bool {
        self.inner.bytes(bytes)
    }

    fn end(&mut self) {
        self.inner.end();
        // Nobody may be waiting any more.
        let _ = self.done.send(());
    }
}

/// Says when its consumer has had everything.
struct Ending {
    inner: Box<dyn Consumer>,
    done: Sender<()>,
}

impl Consumer for Ending {
    fn begin(&mut self, process: Process) {
        self.inner.begin(process);
    }

    fn records(&mut self, bytes: &[u8]) {
        self.inner.records(bytes);
    }

    fn end(&mut self) {
        self.inner.end();
        // Nobody may be waiting any more.
        let _ = self.done.send(());
    }
}

impl ReplayProcess {
    /// The kernel's number of the process.
    pub fn process(&self) -> i32 {
        self.process
    }

    /// Goes on until the goal, observing nothing.
    pub fn run(&self, to: Goal) -> io::Result<Stopped> {
        self.ask(&Request::Run { to, plan: None })
    }

    /// Goes on until the goal; what the plan observes goes to a consumer, which has had all of it
    /// when this returns.
    pub fn observe(
        &self,
        to: Goal,
        plan: Plan,
        consumer: Box<dyn Consumer>,
    ) -> io::Result<Stopped> {
        plan.check().map_err(|conflict| io::Error::new(io::ErrorKind::InvalidInput, conflict))?;
        let (done, finished): (_, Receiver<()>) = channel();
        let ending = Box::new(Ending { inner: consumer, done });
        lock(&self.consumers).events.insert(self.process, ending);
        let stopped = self.ask(&Request::Run { to, plan: Some(Box::new(plan)) })?;
        // An error says that the consumer is gone: it never got anything.
        drop(lock(&self.consumers).events.remove(&self.process));
        let _ = finished.recv();
        Ok(stopped)
    }

    /// Goes on until the goal; the process as it is now and all that happens go to a new log, all
    /// of which has been taken when this returns.
    pub fn extract(&self, to: Goal, log: Box<dyn LogSink>) -> io::Result<Stopped> {
        let (done, finished): (_, Receiver<()>) = channel();
        let ending = Box::new(EndingLog { inner: log, done });
        lock(&self.consumers).logs.insert(self.process, ending);
        let stopped = self.ask(&Request::Extract { to })?;
        drop(lock(&self.consumers).logs.remove(&self.process));
        let _ = finished.recv();
        Ok(stopped)
    }

    /// Leaves the replay and goes on by itself, altered, until the goal, or the program ends or the budget is used
    /// up; or goes on so if it has left the replay before. What it wrote to standard output and error comes as a
    /// file. A process that has not come to its goal can then only be read.
    pub fn divert(&self, plan: Plan, to: Goal, budget: Budget) -> io::Result<(Diverted, File)> {
        send(&self.socket, &Request::Divert { plan: Box::new(plan), to, budget })?;
        match receive(&self.socket)? {
            (Reply::Diverted(diverted), Some(output)) => Ok((*diverted, File::from(output))),
            _ => Err(unexpected()),
        }
    }

    /// Where the process is.
    pub fn place(&self) -> io::Result<Stopped> {
        self.ask(&Request::Where)
    }

    /// All threads of the process that live, with their registers.
    pub fn threads(&self) -> io::Result<Vec<ThreadData>> {
        send(&self.socket, &Request::Threads)?;
        match receive(&self.socket)?.0 {
            Reply::Threads(threads) => Ok(threads),
            Reply::Stopped(_) | Reply::Checkpoint { .. } | Reply::Diverted(_) => Err(unexpected()),
        }
    }

    /// Leaves a copy of the process behind.
    pub fn checkpoint(&self) -> io::Result<Self> {
        send(&self.socket, &Request::Checkpoint)?;
        match receive(&self.socket)? {
            (Reply::Checkpoint { process }, Some(socket)) => {
                let copy = Self { socket, process, consumers: self.consumers.clone() };
                Ok(copy)
            }
            _ => Err(unexpected()),
        }
    }

    /// Reads guest memory; how many bytes there are.
    pub fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let remote = libc::iovec { iov_base: address as *mut _, iov_len: into.len() };
        // SAFETY: the kernel writes into the slice, and checks the other side.
        let got = unsafe {
            libc::process_vm_readv(self.process, &raw const local, 1, &raw const remote, 1, 0)
        };
        usize::try_from(got).unwrap_or(0)
    }

    fn ask(&self, request: &Request) -> io::Result<Stopped> {
        send(&self.socket, request)?;
        self.receive()
    }

    fn receive(&self) -> io::Result<Stopped> {
        match receive(&self.socket)?.0 {
            Reply::Stopped(stopped) => Ok(*stopped),
            _ => Err(unexpected()),
        }
    }
}

fn unexpected() -> io::Error {
    io::Error::other("a replay gave an answer to something else")
}

fn sockets() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut pair = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: the kernel writes two descriptors.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both were just made.
    Ok(unsafe { (OwnedFd::from_raw_fd(pair[0]), OwnedFd::from_raw_fd(pair[1])) })
}

fn send(socket: &OwnedFd, request: &Request) -> io::Result<()> {
    let text = serde_json::to_vec(request)?;
    // SAFETY: the kernel only reads the text.
    let sent = unsafe {
        libc::send(socket.as_raw_fd(), text.as_ptr().cast(), text.len(), libc::MSG_NOSIGNAL)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receives an answer, and the descriptor that came with it.
fn receive(socket: &OwnedFd) -> io::Result<(Reply, Option<OwnedFd>)> {
    let mut text = vec![0u8; 4 << 20];
    let mut part = libc::iovec { iov_base: text.as_mut_ptr().cast(), iov_len: text.len() };
    let mut rights = [0u64; 8];
    // SAFETY: plain data, all of it alive; the kernel writes at most the lengths it is told.
    let (got, message) = unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = rights.as_mut_ptr().cast();
        message.msg_controllen = size_of::<[u64; 8]>();
        let flags = libc::MSG_CMSG_CLOEXEC;
        let mut got = -1;
        for _ in 0..100 {
            got = libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags);
            if got >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                break;
            }
        }
        (got, message)
    };
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    if got == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    // A header of two words, then the descriptor.
    let descriptor = (message.msg_controllen > size_of::<libc::cmsghdr>()).then(|| {
        // SAFETY: the kernel has just given it to this process.
        unsafe { OwnedFd::from_raw_fd(rights[2] as u32 as i32) }
    });
    Ok((serde_json::from_slice(&text[..got as usize])?, descriptor))
}
