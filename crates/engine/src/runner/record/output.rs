//! Which calls write to the standard output or error that the tool itself was started with: replay
//! shows those again.

use crate::runner::record::files::shared;
use crate::runner::sys::syscall;
use recording::log::Output;
use std::sync::atomic::Ordering;

/// The files behind the tool's own descriptors 1 and 2: device and inode.
pub type Identities = [Option<(u64, u64)>; 2];

/// Knows the tool's outputs when it sees them.
pub struct Outputs(Identities);

impl Outputs {
    /// For the tool's own descriptors.
    pub fn new(identities: Identities) -> Self {
        Self(identities)
    }

    /// Whether a descriptor leads to the tool's standard output (1) or error (2).
    pub fn stream(&self, descriptor: u64) -> Option<u8> {
        let identity = identity(descriptor)?;
        // One that is asked for by its own number is meant, if both lead to the same place.
        let asked = [1, 2].into_iter().find(|stream| u64::from(*stream) == descriptor);
        asked
            .into_iter()
            .chain([1, 2])
            .find(|stream: &u8| self.0[*stream as usize - 1] == Some(identity))
    }

    /// Whether a call that has returned wrote there.
    pub fn of(&self, number: u64, arguments: [u64; 6], answer: i64) -> Option<Output> {
        let writes = matches!(
            number as i64,
            libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 | libc::SYS_sendto
        );
        if !writes || answer <= 0 {
            return None;
        }
        let stream = self.stream(arguments[0])?;
        Some(Output { stream, order: shared().outputs.fetch_add(1, Ordering::Relaxed) })
    }
}

/// What tells files apart.
pub fn identity(descriptor: u64) -> Option<(u64, u64)> {
    let mut status = [0u64; 18];
    // SAFETY: the kernel writes one `struct stat`, 144 bytes.
    let answer = unsafe { syscall!(libc::SYS_fstat, descriptor, status.as_mut_ptr()) };
    (answer == 0).then_some((status[0], status[1]))
}
