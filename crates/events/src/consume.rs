//! The one trait that everything which eats an event stream implements, and what such a consumer
//! can do about the process that the events come from.

use crate::plan::{Paint, Plan};

/// Eats the event stream of one process.
pub trait Consumer: Send {
    /// The stream begins. Not called where it comes from a file.
    fn begin(&mut self, process: Process) {
        let _ = process;
    }

    /// The next records, all of them whole.
    fn records(&mut self, bytes: &[u8]);

    /// The stream has ended.
    fn end(&mut self) {}
}

/// The process that events come from.
pub struct Process {
    /// Its number.
    pub id: i32,
    /// The process that it was forked from with everything that had been painted, if it was.
    pub parent: Option<i32>,
    /// The way to change what is observed of it.
    pub control: Box<dyn Control>,
}

/// Changes what is observed of a running process. What it asks for happens while the guest runs:
/// the stream says when.
pub trait Control: Send {
    /// Paints the shadow that the plan's filter tests. Accesses that the guest makes meanwhile are
    /// tested with the old or the new bits.
    fn paint(&self, paint: &Paint);

    /// Puts another plan in force; its number in the PLAN record that will say so.
    fn set_plan(&self, plan: Plan) -> u32;

    /// Ends the process, as SIGKILL does.
    fn end(&self);
}

/// A consumer that looks at nothing: what observing costs by itself.
#[derive(Debug, Default)]
pub struct Discard {
    /// Bytes that went by.
    pub bytes: u64,
}

impl Consumer for Discard {
    fn records(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
    }
}
