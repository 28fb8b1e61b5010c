//! Why a program wrote what it wrote: from a text, a byte or a line of its output to the call that wrote it,
//! to the bytes in the buffer that it was given, and to where those came from.
//!
//! One replay tells what was written by which call; the trace tells when. Text may lie across several
//! calls, then each is asked about.

use crate::case::Case;
use crate::diagnosis::{Shown, Wanted, shown};
use crate::error::fault_or_input;
use crate::sight::Sight;
use crate::slicing::Execution;
use analyze::dependence::control::Control;
use analyze::dependence::trace::Item;
use analyze::slice::Wants;
use analyze::slice::ending::Asked;
use analyze::slice::explain::Explanation;
use anyhow::{Context, bail};
use events::decode::{Decoder, Record};
use events::plan::Syscalls;
use events::{Consumer, Plan};
use serde::Serialize;
use std::sync::{Arc, Mutex, PoisonError};
use syscalls::number;

/// Which output is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// The last time that this was written.
    Text(String),
    /// The byte of this number, from 0.
    Byte(u64),
    /// The line of this number, from 1.
    Line(u64),
}

/// Output that was found.
#[derive(Clone, Debug, Serialize)]
pub struct OutputMatch {
    /// The descriptor that it was written to.
    pub descriptor: u64,
    /// How many bytes were written to that before.
    pub offset: u64,
    /// What was written.
    pub text: String,
    /// Where it was when it was written.
    #[serde(skip)]
    pieces: Vec<Piece>,
}

/// Bytes of a buffer that a call was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// The number of the call among those that wrote anything.
    call: u64,
    address: u64,
    bytes: u64,
}

/// What one call wrote.
#[derive(Clone, Debug)]
struct Written {
    descriptor: u64,
    /// Address and contents of its buffers.
    buffers: Vec<(u64, Vec<u8>)>,
}

/// Whether a call writes to the descriptor that is its first argument, and wrote something.
fn writes(call: u64, answer: i64) -> bool {
    let calls = [
        number::write,
        number::writev,
        number::pwrite64,
        number::pwritev,
        number::sendto,
        number::sendmsg,
    ];
    calls.contains(&call) && answer > 0
}

/// Notes what calls write.
#[derive(Default)]
struct Listener {
    decoder: Decoder,
    buffers: Vec<(u64, Vec<u8>)>,
    calls: Arc<Mutex<Vec<Written>>>,
}

impl Consumer for Listener {
    fn records(&mut self, bytes: &[u8]) {
        let Self { decoder, buffers, calls } = self;
        let each = |record: Record<'_, '_>| match record {
            Record::Buffers(list) => {
                let read = list.flatten().filter(|buffer| !buffer.write);
                buffers.extend(read.filter_map(|b| Some((b.address, b.bytes?.to_vec()))));
            }
            Record::Syscall(call, arguments, answer) => {
                let buffers = std::mem::take(buffers);
                if writes(call, answer) {
                    let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
                    calls.push(Written { descriptor: arguments[0], buffers });
                }
            }
            _ => {}
        };
        // What makes no sense ends the stream; the trace of the same run will say so.
        let _ = decoder.records(bytes, each);
    }
}

/// Everything that a process wrote.
pub struct Outputs(Vec<Written>);

impl Outputs {
    /// Replays a process and listens.
    pub fn of(case: &Case, process: u32) -> anyhow::Result<Self> {
        let calls: Arc<Mutex<Vec<Written>>> = Arc::default();
        let listened = calls.clone();
        let make = &mut move |_| -> Box<dyn Consumer> {
            Box::new(Listener { calls: listened.clone(), ..Listener::default() })
        };
        let plan = Plan::default().with_syscalls(Syscalls::Bytes);
        case.session()
            .replay(process, plan, replay::Shown::Nothing, make)
            .map_err(fault_or_input)?;
        let calls = std::mem::take(&mut *calls.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Self(calls))
    }

    /// Finds what is meant; on standard output, then on standard error, unless a descriptor is given.
    pub fn find(&self, output: &Output, descriptor: Option<u64>) -> anyhow::Result<OutputMatch> {
        let mut candidates: Vec<u64> = descriptor.map_or_else(|| vec![1, 2], |fd| vec![fd]);
        if descriptor.is_none() && matches!(output, Output::Text(_)) {
            let mut others: Vec<u64> = self.0.iter().map(|written| written.descriptor).collect();
            others.sort_unstable();
            others.dedup();
            candidates.extend(others.into_iter().filter(|fd| *fd > 2));
        }
        for fd in &candidates {
            let all = self.written_to(*fd);
            if let Some((from, bytes)) = range(&all, output) {
                let text = String::from_utf8_lossy(&all[from..from + bytes]).into_owned();
                let pieces = self.pieces(*fd, from as u64, bytes as u64);
                return Ok(OutputMatch { descriptor: *fd, offset: from as u64, text, pieces });
            }
            if !matches!(output, Output::Text(_)) {
                break;
            }
        }
        bail!(self.missing(output, &candidates))
    }

    fn written_to(&self, descriptor: u64) -> Vec<u8> {
        let own = self.0.iter().filter(|written| written.descriptor == descriptor);
        own.flat_map(|written| &written.buffers).flat_map(|(_, bytes)| bytes).copied().collect()
    }

    /// Where some bytes of what was written to a descriptor were.
    fn pieces(&self, descriptor: u64, from: u64, bytes: u64) -> Vec<Piece> {
        let (mut at, end, mut pieces) = (0, from + bytes, Vec::new());
        for (call, written) in (0u64..).zip(&self.0) {
            if written.descriptor != descriptor {
                continue;
            }
            for (address, contents) in &written.buffers {
                let length = contents.len() as u64;
                let (first, last) = (from.max(at), end.min(at + length));
                if first < last {
                    let address = address + (first - at);
                    pieces.push(Piece { call, address, bytes: last - first });
                }
                at += length;
            }
        }
        pieces
    }

    /// What to say of output that there is not.
    fn missing(&self, output: &Output, descriptors: &[u64]) -> String {
        let fd = descriptors[0];
        let all = self.written_to(fd);
        let lines = all.iter().filter(|byte| **byte == b'\n').count();
        let text = String::from_utf8_lossy(&all).into_owned();
        let last = text.lines().last().map_or_else(String::new, |line| {
            let line: String = line.chars().take(60).collect();
            format!("; the last line is {line:?}")
        });
        let what = match output {
            Output::Text(text) => format!("{text:?} was never written"),
            Output::Byte(number) => format!("there is no byte {number} in the output"),
            Output::Line(number) => format!("there is no line {number} in the output"),
        };
        format!("{what}: {} bytes in {lines} lines went to descriptor {fd}{last}", all.len())
    }
}

/// Which bytes of an output are meant: from where, how many.
fn range(all: &[u8], output: &Output) -> Option<(usize, usize)> {
    match output {
        Output::Text(text) if text.is_empty() => None,
        Output::Text(text) => {
            let found = all.windows(text.len()).rposition(|there| there == text.as_bytes())?;
            Some((found, text.len()))
        }
        Output::Byte(number) => {
            let at = usize::try_from(*number).ok().filter(|at| *at < all.len())?;
            Some((at, 1))
        }
        Output::Line(number) => {
            let before = usize::try_from(number.checked_sub(1)?).ok()?;
            let mut lines = all.split(|byte| *byte == b'\n').skip(before);
            let line = lines.next().filter(|line| !line.is_empty() || lines.next().is_some())?;
            Some((line.as_ptr() as usize - all.as_ptr() as usize, line.len()))
        }
    }
}

/// Where output came from.
pub struct Origin {
    /// What happened.
    pub execution: Execution,
    /// The output.
    pub found: OutputMatch,
    /// The chain.
    pub explanation: Explanation,
    /// Its statements that are shown.
    pub shown: Vec<Shown>,
}

impl Origin {
    /// Explains output of a process of a case.
    pub fn of(
        case: &Case,
        process: u32,
        wanted: Wanted<'_>,
        (output, descriptor): (&Output, Option<u64>),
    ) -> anyhow::Result<Self> {
        let found = Outputs::of(case, process)?.find(output, descriptor)?;
        let execution = Execution::of(case, process, wanted.memory)?;
        let asked = found.asked(&execution)?;
        let control = Control::of(&execution.trace, &execution.program);
        let explanation = execution.explained(&control, &asked)?;
        let mut sight = Sight::of(case, process, execution.trace.tick().0)?;
        let shown = shown(&execution, &mut sight, &explanation.view.statements, wanted);
        Ok(Self { execution, found, explanation, shown })
    }
}

impl OutputMatch {
    /// What is asked about it: the bytes that each call was given, the last call first.
    pub fn asked(&self, execution: &Execution) -> anyhow::Result<Vec<Asked>> {
        let mut asked: Vec<Asked> = Vec::new();
        for piece in &self.pieces {
            let (thread, moment) = when(execution, piece.call)?;
            let memory = (piece.address, piece.bytes);
            match asked.last_mut().filter(|last| last.moment == moment) {
                Some(last) => last.wants.memory.push(memory),
                None => asked.push(Asked {
                    thread,
                    moment,
                    wants: Wants { memory: vec![memory], ..Wants::default() },
                    words: format!("{:?}", self.text),
                    pc: None,
                }),
            }
        }
        asked.reverse();
        Ok(asked)
    }
}

/// When the call was made that was so many among those that wrote something.
fn when(execution: &Execution, call: u64) -> anyhow::Result<(u32, base::StepCount)> {
    let (mut found, mut count) = (None, 0);
    execution.trace.forward(|when, item| {
        if let Item::Syscall { number, answer, .. } = item
            && writes(number, answer)
        {
            if count == call {
                found = Some((when.thread, when.moment));
            }
            count += 1;
        }
    });
    found.context("the call that wrote it is not in the recording")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs() -> Outputs {
        let written = |descriptor, buffers: &[(u64, &str)]| Written {
            descriptor,
            buffers: buffers.iter().map(|(at, text)| (*at, text.as_bytes().to_vec())).collect(),
        };
        Outputs(vec![
            written(1, &[(0x1000, "one\ntw")]),
            written(2, &[(0x5000, "oops\n")]),
            written(1, &[(0x2000, "o\n\nto"), (0x3000, "tal 7\n")]),
        ])
    }

    /// Where, what, and the pieces of memory that it was written from: call, address, bytes.
    type Place = (u64, String, Vec<(u64, u64, u64)>);

    fn found(output: Output, fd: Option<u64>) -> Result<Place, String> {
        let found = outputs().find(&output, fd).map_err(|error| error.to_string())?;
        let pieces = found.pieces.iter().map(|piece| (piece.call, piece.address, piece.bytes));
        Ok((found.offset, found.text.clone(), pieces.collect()))
    }

    #[test]
    fn text_is_found_where_it_was_written_also_in_pieces() {
        let total = Ok((9, "total 7".into(), vec![(2, 0x2003, 2), (2, 0x3000, 5)]));
        assert_eq!(found(Output::Text("total 7".into()), None), total);
        let two = Ok((4, "two".into(), vec![(0, 0x1004, 2), (2, 0x2000, 1)]));
        assert_eq!(found(Output::Line(2), None), two);
        let oops = Ok((0, "oops".into(), vec![(1, 0x5000, 4)]));
        assert_eq!(found(Output::Text("oops".into()), None), oops);
        assert_eq!(found(Output::Byte(4), None), Ok((4, "t".into(), vec![(0, 0x1004, 1)])));
        assert_eq!(found(Output::Line(3), None), Ok((8, String::new(), vec![])));
    }

    #[test]
    fn what_was_not_written_is_refused_with_what_was() {
        let text = found(Output::Text("eight".into()), None).expect_err("not there");
        assert!(text.contains("never written") && text.contains("total 7"), "{text}");
        for output in [Output::Line(5), Output::Byte(99)] {
            let text = found(output, Some(1)).expect_err("not there");
            assert!(text.contains("17 bytes in 4 lines"), "{text}");
        }
    }
}
