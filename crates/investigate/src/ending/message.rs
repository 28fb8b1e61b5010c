//! The message with which a program explains its exit: what decided that it is written, and where its text
//! came from. Most programs that fail by themselves notice something, say so, and end much later, in
//! code that nothing is wrong with.

use super::decided;
use crate::slicing::Execution;
use analyze::dependence::control::Control;
use analyze::dependence::trace::{Item, ranges};
use analyze::slice::Wants;
use analyze::slice::ending::Asked;
use base::StepCount;
use syscalls::number;

const STANDARD_ERROR: u64 = 2;
/// Bytes of the text that are asked about; a backtrace of a program's own may follow.
const LONGEST: u64 = 80;
/// Shorter writes are punctuation.
const SHORTEST: i64 = 4;

/// A write to standard error.
struct Written {
    thread: u32,
    moment: StepCount,
    /// What was written: address, bytes.
    text: Option<(u64, u64)>,
}

/// What to ask about the last message of a program that wrote one: the decision, then the text.
pub fn asked(execution: &Execution, control: &Control) -> Vec<Asked> {
    let Some(Written { thread, moment, text }) = last(execution) else { return Vec::new() };
    let words = "the decision to write its message";
    let decided = decided::decided(execution, control, thread, moment, words);
    let mut asked = decided.map_or_else(Vec::new, |decided| decided.asked);
    asked.extend(text.map(|(address, bytes)| Asked {
        thread,
        moment,
        wants: Wants { memory: vec![(address, bytes.min(LONGEST))], ..Wants::default() },
        words: "its message".into(),
        pc: None,
    }));
    asked
}

fn last(execution: &Execution) -> Option<Written> {
    let mut back = execution.trace.backward();
    let mut found: Option<Written> = None;
    while let Some((when, item)) = back.previous() {
        if let Some(mut written) = found.take() {
            if when.thread == written.thread
                && when.moment == written.moment
                && let Item::Read(read) = item
            {
                written.text = ranges(read).max_by_key(|(_, bytes)| *bytes);
            }
            return Some(written);
        }
        if let Item::Syscall { number: call, arguments, answer } = item
            && [number::write, number::writev].contains(&call)
            && arguments[0] == STANDARD_ERROR
            && answer >= SHORTEST
        {
            found = Some(Written { thread: when.thread, moment: when.moment, text: None });
        }
    }
    found
}
