//! The one trait that everything which eats an event stream implements.

/// Eats the event stream of one process.
pub trait Consumer: Send {
    /// The next records, all of them whole.
    fn records(&mut self, bytes: &[u8]);

    /// The stream has ended.
    fn end(&mut self) {}
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
