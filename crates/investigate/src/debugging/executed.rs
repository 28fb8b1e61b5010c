//! What a thread executes in a window, read out of the events of a replay.

use events::Consumer;
use events::decode::{Decoder, Event};
use std::sync::{Arc, Mutex, PoisonError};

/// What one thread executes.
#[derive(Clone)]
pub struct Executed {
    thread: u32,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    decoder: Decoder,
    runs: bool,
    pcs: Vec<u64>,
}

impl Executed {
    /// Of a thread, by the kernel's number.
    pub fn by(thread: i32) -> Self {
        Self { thread: thread as u32, inner: Arc::default() }
    }

    /// The addresses of its instructions, in order.
    pub fn pcs(&self) -> Vec<u64> {
        std::mem::take(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner).pcs)
    }
}

impl Consumer for Executed {
    fn records(&mut self, bytes: &[u8]) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let Inner { decoder, runs, pcs } = &mut *inner;
        // Only a damaged stream is malformed, and the replay that sent it tells of that itself.
        let _ = decoder.events(bytes, |event| match event {
            Event::Thread(thread) => *runs = thread == self.thread,
            Event::Instruction { pc, .. } if *runs => pcs.push(pc),
            _ => {}
        });
    }
}
