//! What the recorded process was answered from where the diversion began, call by call and thread by thread.
//!
//! Answers come from the log, arguments from the **twin**. A call is answered as recorded if one of the next
//! calls of the same thread is the same; what lies between was left out by what is altered. Only buffers
//! that the kernel writes to may lie elsewhere: what it wrote moves along.

use super::super::calls::view;
use super::super::control;
use super::super::source::Source;
use super::calls;
use crate::runner::context::Context;
use crate::runner::cpu::NOT_STARTED;
use crate::sys::{self, syscall};
use recording::log::{Call, Entry, FileView};
use std::collections::{HashMap, VecDeque};
use syscalls::Argument;

/// A call of the recorded process.
pub struct Made {
    /// Its answer, and where the kernel wrote.
    pub call: Call,
    /// What was written, one piece after another.
    pub payload: Vec<u8>,
    /// The file that it mapped, if it did.
    pub mapped: Option<(String, FileView)>,
    arguments: [u64; 6],
}

/// The calls that lie ahead.
pub struct Recorded {
    /// Of each thread, in order, as far as the log was read.
    ahead: HashMap<i32, VecDeque<Made>>,
    /// Bytes of what is kept.
    bytes: usize,
    /// The thread that the log is about.
    thread: i32,
    twin: Option<i32>,
    /// The twin's last message: the number of the entry, the call, its arguments.
    last: Option<[u64; 8]>,
    over: bool,
    /// How long the twin is waited for at most, in milliseconds.
    patience: i32,
}

/// How many calls of its thread ahead a call is looked for that can be answered otherwise.
pub const NEAR: usize = 32;

/// The same for one that cannot. The twin has to go as far.
pub const FAR: usize = 1024;

/// Bytes of answers that are kept.
const MOST_BYTES: usize = 64 << 20;

/// In a twin: tells how a call was made, which is the entry of the log that was taken last.
pub fn report_to_twin(context: &mut Context, number: u64, arguments: [u64; 6]) {
    let Some(socket) = context.replayer().twin else { return };
    let [a, b, c, d, e, f] = arguments;
    let words = [context.replayer().source.taken(), number, a, b, c, d, e, f];
    // SAFETY: the kernel reads a live array.
    let sent =
        unsafe { syscall!(libc::SYS_sendto, socket, words.as_ptr(), 64, libc::MSG_NOSIGNAL, 0, 0) };
    if sent < 0 {
        sys::exit_group(0);
    }
}

impl Recorded {
    /// What the log has from here on, where this thread runs.
    pub fn new(twin: i32, thread: i32) -> Self {
        let (ahead, twin) = (HashMap::new(), Some(twin));
        Self { ahead, bytes: 0, thread, twin, last: None, over: false, patience: 0 }
    }

    /// Asks the twin for nothing more.
    pub fn close(&mut self) {
        if let Some(twin) = self.twin.take() {
            control::close(twin);
        }
    }

    /// The recorded call that a call of a thread is, if it is among the next ones; those before it are dropped.
    pub fn take(
        &mut self,
        source: &mut Source,
        (thread, number, arguments): (i32, u64, [u64; 6]),
        ahead_at_most: usize,
        milliseconds: u64,
    ) -> Result<Option<Made>, TimedOut> {
        self.patience = milliseconds.min(i32::MAX as u64) as i32;
        let mut looked_at = 0;
        loop {
            let ahead = self.ahead.entry(thread).or_default();
            let same = |made: &Made| is_same(made, number, arguments);
            let near = ahead.iter().take(ahead_at_most);
            if let Some(at) = near.skip(looked_at).position(same) {
                let before = looked_at + at;
                let dropped: usize = ahead.drain(..before).map(|made| made.payload.len()).sum();
                let Some(mut made) = ahead.pop_front() else { return Ok(None) };
                self.bytes -= dropped + made.payload.len();
                move_writes(&mut made, arguments);
                return Ok(Some(made));
            }
            looked_at = ahead.len();
            let enough = looked_at >= ahead_at_most || self.bytes >= MOST_BYTES;
            if enough || !self.read_on(source)? {
                return Ok(None);
            }
        }
    }

    /// Takes the next entry of the log. Whether there was one.
    fn read_on(&mut self, source: &mut Source) -> Result<bool, TimedOut> {
        if self.over || matches!(source.peek(), None | Some(Entry::End(_) | Entry::Skip(_))) {
            self.over = true;
            return Ok(false);
        }
        let length = source.payload_length() as usize;
        let entry = source.take();
        let number = source.taken();
        let mut payload = vec![0; length];
        if length > 0 {
            source.payload(&mut payload);
        }
        match entry {
            Some(Entry::Switch { thread, .. }) => self.thread = thread,
            // One that a signal prevented is made again.
            Some(Entry::Call(call)) if call.answer == NOT_STARTED => {}
            Some(Entry::Call(call)) if calls::is_own(call.number) => {}
            Some(Entry::Call(call)) => {
                // What a mapping shows stands behind the call.
                let mapped = view(source);
                let Some(arguments) = self.arguments(number)? else { return Ok(true) };
                let anonymous = arguments[3] as i32 & libc::MAP_ANONYMOUS != 0;
                if call.number as i64 == libc::SYS_mmap && anonymous {
                    return Ok(true);
                }
                self.bytes += payload.len();
                let made = Made { call, payload, mapped, arguments };
                self.ahead.entry(self.thread).or_default().push_back(made);
            }
            _ => {}
        }
        Ok(true)
    }

    /// How the call was made whose answer is this entry of the log, if the twin has made it.
    fn arguments(&mut self, entry: u64) -> Result<Option<[u64; 6]>, TimedOut> {
        while self.last.is_none_or(|last| last[0] < entry) {
            let Some(twin) = self.twin else { return Ok(None) };
            let Some(last) = receive(twin, self.patience)? else { return Ok(None) };
            self.last = Some(last);
        }
        let words = self.last.filter(|last| last[0] == entry);
        Ok(words.map(|[_, _, a, b, c, d, e, f]| [a, b, c, d, e, f]))
    }
}

/// The twin has said nothing for as long as the diversion may still take.
pub struct TimedOut;

/// What the twin says next; nothing when it has ended.
fn receive(twin: i32, milliseconds: i32) -> Result<Option<[u64; 8]>, TimedOut> {
    let mut asked = libc::pollfd { fd: twin, events: libc::POLLIN, revents: 0 };
    let mut words = [0u64; 8];
    // SAFETY: the kernel writes into one structure and at most the array's length.
    let got = unsafe {
        if syscall!(libc::SYS_poll, &raw mut asked, 1, milliseconds) == 0 {
            return Err(TimedOut);
        }
        syscall!(libc::SYS_recvfrom, twin, words.as_mut_ptr(), 64, 0, 0, 0)
    };
    Ok((got == 64).then_some(words))
}

/// Whether a call is one that was recorded. Where the kernel writes its answer may differ.
fn is_same(made: &Made, number: u64, arguments: [u64; 6]) -> bool {
    made.call.number == number
        && parameters(number).zip(made.arguments.iter().zip(arguments)).all(
            |(kind, (recorded, now))| {
                *recorded == now || is_room(kind) && *recorded != 0 && now != 0
            },
        )
}

/// What the arguments of a call are; of a call that is not known, six numbers.
fn parameters(number: u64) -> impl Iterator<Item = Argument> {
    let known = syscalls::get(number).map_or(&[Argument::Number; 6][..], |call| call.arguments);
    known.iter().copied()
}

fn is_room(kind: Argument) -> bool {
    matches!(kind, Argument::Out(_) | Argument::Output)
}

/// Puts what the kernel wrote where the call wants it now.
fn move_writes(made: &mut Made, arguments: [u64; 6]) {
    let number = made.call.number;
    let rooms = || {
        let pairs = made.arguments.into_iter().zip(arguments);
        parameters(number).zip(pairs).filter(|(kind, _)| is_room(*kind)).map(|(_, pair)| pair)
    };
    for (address, _) in &mut made.call.writes {
        // The nearest room that begins at or before it is the one it lies in.
        let room = rooms().filter(|(then, _)| then <= address).max_by_key(|(then, _)| *then);
        if let Some((then, now)) = room {
            *address = *address - then + now;
        }
    }
}
