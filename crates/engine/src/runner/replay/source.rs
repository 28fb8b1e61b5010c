//! The log as replay reads it: one entry ahead.

use crate::runner::record::log::Log;
use crate::runner::report;
use recording::log::{self, Entry, FRAME};
use recording::{LogReader, Recording};

/// Reads the log of a process.
pub struct Source {
    log: LogReader,
    next: Option<Entry>,
    payload: u64,
    taken: u64,
    /// Lengths and head of the next entry, as they stand in the log.
    frame: Vec<u8>,
    /// Where what is taken is copied to.
    copy: Option<Log>,
}

impl Source {
    /// The log of a process from its beginning.
    pub fn open(recording: &Recording, process: u32) -> Self {
        let log = recording.log(process).unwrap_or_else(|error| unreadable(&error.to_string()));
        let mut source =
            Self { log, next: None, payload: 0, taken: 0, frame: Vec::new(), copy: None };
        source.advance();
        source
    }

    /// What happens next; `None` at the end.
    pub fn peek(&self) -> Option<&Entry> {
        self.next.as_ref()
    }

    /// Takes the next entry. A payload that was not read is passed over.
    pub fn take(&mut self) -> Option<Entry> {
        let entry = self.next.take()?;
        if let Some(copy) = &mut self.copy {
            copy.append(&self.frame);
        }
        if self.payload == 0 {
            self.advance();
        }
        self.taken += 1;
        Some(entry)
    }

    /// Reads the next part of the payload of the entry that was taken last.
    pub fn payload(&mut self, into: &mut [u8]) {
        if into.len() as u64 > self.payload {
            unreadable("an entry has less to say than it announces");
        }
        if let Err(error) = self.log.read_exact(into) {
            unreadable(&error.to_string());
        }
        if let Some(copy) = &mut self.copy {
            copy.append(into);
        }
        self.payload -= into.len() as u64;
        if self.payload == 0 && self.next.is_none() {
            self.advance();
        }
    }

    /// Bytes of the payload of the next entry, or what is left of the last one's.
    pub fn payload_length(&self) -> u64 {
        self.payload
    }

    /// Copies what is taken from now on to another log, or stops doing so; the one before.
    pub fn copy_to(&mut self, log: Option<Log>) -> Option<Log> {
        std::mem::replace(&mut self.copy, log)
    }

    /// Copies the next entry, which nobody will take.
    pub fn copy_next(&mut self) {
        if let (Some(copy), Some(Entry::End(_))) = (&mut self.copy, &self.next) {
            copy.append(&self.frame);
        }
    }

    /// Entries taken so far.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The next entry in words.
    pub fn describe(&self) -> String {
        match &self.next {
            None => "nothing more".into(),
            Some(Entry::Call(call)) => {
                let name = syscalls::name(call.number).unwrap_or("an unknown call");
                format!("{name}, answered {}", call.answer)
            }
            Some(Entry::Switch { thread, time }) => {
                format!("a switch to thread {thread} at tick {time}")
            }
            Some(Entry::Stop(at)) => format!("a stop at {:#x}, tick {}", at.pc, at.time),
            Some(Entry::Signal { at, info }) => {
                let number = info.raw.first().copied().unwrap_or_default();
                format!("signal {number} at {:#x}, tick {}", at.pc, at.time)
            }
            Some(Entry::Answer { .. }) => "an answer of the processor's".into(),
            Some(Entry::End(ending)) => format!("the end ({ending:?})"),
            Some(Entry::Exec) => "another program".into(),
            Some(Entry::Image(_) | Entry::Pages { .. }) => "an image".into(),
            Some(Entry::Others { .. }) => "what other processes wrote".into(),
            Some(Entry::Attached { .. }) => "a segment of shared memory".into(),
            Some(Entry::Cut { .. }) => "a file that becomes shorter".into(),
            Some(Entry::Mapped { .. }) => "contents of a file".into(),
            Some(Entry::Skip(skip)) => {
                format!("something left out from {:#x}, tick {} on", skip.at.pc, skip.at.time)
            }
            Some(Entry::Forked { .. }) => "the beginning of a child".into(),
        }
    }

    /// Reads the next entry ahead. A log that was cut ends before the entry that is not whole.
    fn advance(&mut self) {
        self.next = None;
        let left = self.log.length() - self.log.position();
        if left < FRAME as u64 {
            return;
        }
        let mut frame = [0; FRAME];
        let mut read = |into: &mut [u8]| {
            if let Err(error) = self.log.read_exact(into) {
                unreadable(&error.to_string());
            }
        };
        read(&mut frame);
        let Some((head, payload)) = log::lengths(frame) else {
            unreadable("an entry of the log is longer than any can be")
        };
        if left - (FRAME as u64) < u64::from(head) + u64::from(payload) {
            return;
        }
        let mut bytes = vec![0; FRAME + head as usize];
        bytes[..FRAME].copy_from_slice(&frame);
        read(&mut bytes[FRAME..]);
        self.payload = u64::from(payload);
        self.next = log::read_head(&bytes[FRAME..]);
        self.frame = bytes;
        if self.next.is_none() {
            unreadable("an entry of the log makes no sense to this version");
        }
    }
}

/// The recording is damaged.
pub fn unreadable(why: &str) -> ! {
    report::send(&crate::report::Message::Refused(format!("the recording cannot be read: {why}")));
    crate::sys::exit_group(2)
}
