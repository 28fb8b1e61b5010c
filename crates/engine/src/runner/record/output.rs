//! Which calls write to the standard output or error that the tool itself was started with: replay
//! shows those again.

use crate::runner::record::files::shared;
use crate::sys::syscall;
use recording::log::Output;
use std::sync::atomic::Ordering;

/// The files behind the tool's own descriptors 1 and 2: device and inode.
pub type Identities = [Option<(u64, u64)>; 2];

/// Knows the tool's outputs when it sees them.
pub struct Outputs {
    identities: Identities,
    /// Where the call under way writes to.
    stream: Option<u8>,
}

impl Outputs {
    /// For the tool's own descriptors.
    pub fn new(identities: Identities) -> Self {
        Self { identities, stream: None }
    }

    /// Whether a descriptor leads to the tool's standard output (1) or error (2).
    pub fn stream(&self, descriptor: u64) -> Option<u8> {
        let identity = identity(descriptor)?;
        // One that is asked for by its own number is meant, if both lead to the same place.
        let asked = [1, 2].into_iter().find(|stream| u64::from(*stream) == descriptor);
        asked
            .into_iter()
            .chain([1, 2])
            .find(|stream: &u8| self.identities[*stream as usize - 1] == Some(identity))
    }

    /// Before a call that may write there: from here on nobody else does, so that the order in
    /// which the log has outputs is that in which they came.
    pub fn begin(&mut self, number: u64, arguments: [u64; 6]) -> bool {
        self.stream = writes(number).then(|| self.stream(arguments[0])).flatten();
        if self.stream.is_some() {
            take_turn();
        }
        self.stream.is_some()
    }

    /// After it.
    pub fn end(&mut self, answer: i64) -> Option<Output> {
        let stream = self.stream.take()?;
        let order = (answer > 0).then(|| shared().outputs.fetch_add(1, Ordering::Relaxed));
        shared().writing.store(0, Ordering::Release);
        order.map(|order| Output { stream, order })
    }
}

fn writes(number: u64) -> bool {
    matches!(
        number as i64,
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 | libc::SYS_sendto
    )
}

/// Waits until no other process writes; not for ever, as one may have been killed while it did.
fn take_turn() {
    for _ in 0..200 {
        if shared().writing.swap(1, Ordering::Acquire) == 0 {
            return;
        }
        let pause = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        // SAFETY: the kernel only reads the time.
        unsafe { syscall!(libc::SYS_nanosleep, &raw const pause, 0) };
    }
}

/// What tells files apart.
pub fn identity(descriptor: u64) -> Option<(u64, u64)> {
    let mut status = [0u64; 18];
    // SAFETY: the kernel writes one `struct stat`, 144 bytes.
    let answer = unsafe { syscall!(libc::SYS_fstat, descriptor, status.as_mut_ptr()) };
    (answer == 0).then_some((status[0], status[1]))
}
