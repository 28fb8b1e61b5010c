//! Puts what recording runners send into one file: the logs of all processes, and contents of
//! mapped files, each once.

use engine::host;
use engine::log_listen::LogSink;
use engine::log_ring::{FILE, FILE_HEAD};
use engine::report::LogOrigin;
use recording::log::{self, Ending, Entry, FRAME};
use recording::{End, Origin, ProcessEnd, ProcessStart, Text, WriteError, Writer};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often what waits is handed to the system.
const FLUSH: Duration = Duration::from_millis(500);

/// The file under way, shared by the threads that listen to the guest's processes.
#[derive(Clone)]
pub struct Keeper(Arc<Mutex<Kept>>);

/// What is kept so far.
pub struct Kept {
    /// The file; gone when it is finished.
    pub writer: Option<Writer>,
    /// Why nothing more can be kept.
    pub failure: Option<String>,
    /// What is known of each process.
    pub processes: Vec<ProcessEnd>,
    /// Files that the logs refer to.
    pub files: BTreeSet<u64>,
    /// The process that has a kernel's number now.
    current: HashMap<i32, u32>,
    /// The kernel's number of the first process.
    first: Option<i32>,
    begun: Instant,
    flushed: Instant,
    command: Vec<Text>,
}

impl Keeper {
    /// Keeps to a file that has been begun.
    pub fn new(writer: Writer, command: Vec<Text>) -> Self {
        let now = Instant::now();
        Self(Arc::new(Mutex::new(Kept {
            writer: Some(writer),
            failure: None,
            processes: Vec::new(),
            files: BTreeSet::new(),
            current: HashMap::new(),
            first: None,
            begun: now,
            flushed: now,
            command,
        })))
    }

    /// What is kept.
    pub fn lock(&self) -> MutexGuard<'_, Kept> {
        // A thread that panicked while it kept something is reported by the engine.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up the log of a process.
    pub fn begin(&self, pid: i32, origin: LogOrigin) -> Box<dyn LogSink> {
        let process = self.lock().begin(pid, origin);
        Box::new(Sink { keeper: self.clone(), process, state: State::Head, part: Vec::new() })
    }
}

impl Kept {
    fn begin(&mut self, pid: i32, origin: LogOrigin) -> u32 {
        let before = self.current.get(&pid).copied();
        if let (LogOrigin::Continue, Some(process)) = (origin, before) {
            return process;
        }
        let process = self.processes.len() as u32;
        let mut number = None;
        let (parent, origin) = match origin {
            LogOrigin::Fork { parent, number: parents } => {
                number = Some(parents).filter(|number| *number != pid);
                let parent = self.current.get(&parent).copied();
                let position = parent.zip(self.writer.as_ref());
                let position = position.and_then(|(parent, writer)| writer.position(parent));
                (parent, Origin::Fork { position: position.unwrap_or_default() })
            }
            _ => (before, Origin::Exec),
        };
        let time = self.begun.elapsed().as_nanos() as u64;
        let command = self.command_of(pid, process);
        let start = ProcessStart { process, parent, pid, number, origin, command, time };
        self.processes.push(ProcessEnd { process, ..ProcessEnd::default() });
        self.current.insert(pid, process);
        self.first.get_or_insert(pid);
        self.attempt(|writer| writer.process(&start));
        process
    }

    /// Takes down how the program ended, for one that was ended without a chance to say so.
    pub fn ended(&mut self, ending: host::Ending) {
        let program = self.first.and_then(|pid| self.current.get(&pid));
        let end = program.and_then(|process| self.processes.get_mut(*process as usize));
        if let (Some(ProcessEnd { end: end @ End::Unknown, .. }), host::Ending::Signal(signal)) =
            (end, ending)
        {
            *end = End::Killed(signal);
        }
    }

    /// The command line of a process, as the kernel shows it.
    fn command_of(&self, pid: i32, process: u32) -> Vec<Text> {
        if process == 0 {
            return self.command.clone();
        }
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = line.strip_suffix(b"\0").unwrap_or(&line).split(|byte| *byte == 0);
        words.map(|word| Text(word.to_vec())).collect()
    }

    /// Writes, unless that has failed before.
    fn attempt(&mut self, write: impl FnOnce(&mut Writer) -> Result<(), WriteError>) {
        if self.failure.is_some() {
            return;
        }
        if let Some(writer) = &mut self.writer
            && let Err(error) = write(writer)
        {
            self.failure = Some(error.to_string());
        }
    }

    fn note(&mut self, process: u32, entry: &Entry) {
        match entry {
            Entry::Image(image) => {
                let views = image.mappings.iter().filter_map(|mapping| mapping.view);
                self.files.extend(views.map(|view| view.key.0));
            }
            Entry::Mapped { view, .. } => {
                self.files.insert(view.key.0);
            }
            _ => {}
        }
        let Some(end) = self.processes.get_mut(process as usize) else { return };
        match entry {
            Entry::Call(_) => end.system_calls += 1,
            Entry::Signal { .. } => end.signals += 1,
            Entry::Switch { .. } => end.switches += 1,
            Entry::Image(image) => end.threads += image.threads.len() as u64,
            Entry::Forked { .. } => end.threads += 1,
            Entry::Exec => end.end = End::Replaced,
            Entry::End(Ending::Exit(code)) => end.end = End::Exited(code & 0xff),
            Entry::End(Ending::Signal(signal)) => end.end = End::Killed(*signal),
            _ => {}
        }
        if let Entry::Call(call) = entry {
            // What has failed to become another program is still the same.
            if end.end == End::Replaced {
                end.end = End::Unknown;
            }
            if call.number == CLONE && call.answer > 0 && self.threads_of_last_clone(call) {
                self.processes[process as usize].threads += 1;
            }
        }
    }

    /// Whether a `clone` made a thread: it wrote nothing that only processes get.
    fn threads_of_last_clone(&self, call: &log::Call) -> bool {
        !self.current.contains_key(&(call.answer as i32))
    }

    fn flush_sometimes(&mut self) {
        if self.flushed.elapsed() > FLUSH {
            self.flushed = Instant::now();
            self.attempt(Writer::flush);
        }
    }
}

const CLONE: u64 = 56;

/// Where in a frame the next byte belongs.
enum State {
    /// In the lengths or in the head.
    Head,
    /// In a payload with so many bytes left.
    Payload(u64),
    /// In a file's contents: their key, and how many bytes are left.
    File(u64, u64),
}

/// Takes the log of one process apart.
struct Sink {
    keeper: Keeper,
    process: u32,
    state: State,
    /// What has come of a head or of a file's contents.
    part: Vec<u8>,
}

impl LogSink for Sink {
    fn bytes(&mut self, mut bytes: &[u8]) -> bool {
        let keeper = self.keeper.clone();
        let mut kept = keeper.lock();
        while !bytes.is_empty() {
            bytes = self.take(bytes, &mut kept);
        }
        kept.flush_sometimes();
        kept.failure.is_none()
    }

    fn end(&mut self) {
        self.keeper.lock().attempt(Writer::flush);
    }
}

impl Sink {
    /// Takes some bytes; the rest.
    fn take<'a>(&mut self, bytes: &'a [u8], kept: &mut Kept) -> &'a [u8] {
        match self.state {
            State::Head => self.take_head(bytes, kept),
            State::Payload(left) => {
                let (now, later) = bytes.split_at((left as usize).min(bytes.len()));
                kept.attempt(|writer| writer.log(self.process, now));
                let left = left - now.len() as u64;
                self.state = if left == 0 { State::Head } else { State::Payload(left) };
                later
            }
            State::File(key, left) => {
                let (now, later) = bytes.split_at((left as usize).min(bytes.len()));
                self.part.extend_from_slice(now);
                let left = left - now.len() as u64;
                if left == 0 {
                    self.keep_file(key, kept);
                } else {
                    self.state = State::File(key, left);
                }
                later
            }
        }
    }

    fn take_head<'a>(&mut self, bytes: &'a [u8], kept: &mut Kept) -> &'a [u8] {
        let wanted = self.wanted();
        let missing = wanted.saturating_sub(self.part.len());
        let (now, later) = bytes.split_at(missing.min(bytes.len()));
        self.part.extend_from_slice(now);
        if self.part.len() < wanted || self.wanted() > wanted {
            return later;
        }
        if self.number(0) == FILE {
            let word = |at: usize| {
                u64::from_le_bytes(self.part[at..at + 8].try_into().expect("eight bytes"))
            };
            let (key, length) = (word(8), word(32));
            self.part.clear();
            self.state = State::File(key, length);
            if length == 0 {
                self.keep_file(key, kept);
            }
            return later;
        }
        if let Some(entry) = log::read_head(&self.part[FRAME..]) {
            kept.note(self.process, &entry);
        }
        let payload = u64::from(self.number(4));
        kept.attempt(|writer| writer.log(self.process, &self.part));
        self.part.clear();
        self.state = if payload == 0 { State::Head } else { State::Payload(payload) };
        later
    }

    /// Bytes of the head, as far as that is known yet.
    fn wanted(&self) -> usize {
        if self.part.len() < FRAME {
            return FRAME;
        }
        match self.number(0) {
            FILE => FILE_HEAD,
            head => FRAME + head as usize,
        }
    }

    fn number(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.part[at..at + 4].try_into().expect("four bytes"))
    }

    fn keep_file(&mut self, key: u64, kept: &mut Kept) {
        let contents = std::mem::take(&mut self.part);
        self.state = State::Head;
        kept.attempt(|writer| {
            let id = writer.blob(&contents)?;
            writer.label(id, key)
        });
    }
}
