//! The host's end of the event rings: the file that they lie in, and for the ring of each process
//! of the guest a thread that feeds what comes to a consumer.

use crate::ring::{self, BOARD_BYTES, BUFFER_BYTES, BUFFERS, FREE, HEADER_BYTES, LAST, RING_BYTES};
use crate::ring::{Board, Header};
use events::Consumer;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Makes the consumer for a process of the guest.
pub type MakeConsumer<'a> = &'a mut (dyn FnMut(i32) -> Box<dyn Consumer> + Send);

/// Part of the rings' file in the host's memory.
struct Mapped {
    base: *mut u8,
    length: u64,
}

// SAFETY: the memory is shared by design; every access goes through atomics or is to a buffer
// that they say is the host's.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    fn new(file: &File, place: u64, length: u64) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping inside a file that is never made shorter.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length as usize,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                place as i64,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base: base.cast(), length })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this size.
        unsafe { libc::munmap(self.base.cast(), self.length as usize) };
    }
}

/// The file of a job's rings.
pub struct Rings {
    file: File,
    board: Mapped,
    leaving: AtomicBool,
}

impl Rings {
    /// A file without rings.
    pub fn new() -> io::Result<Arc<Self>> {
        // SAFETY: a terminated name.
        let descriptor = unsafe { libc::memfd_create(c"events".as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was just made.
        let file = unsafe { File::from_raw_fd(descriptor) };
        set_length(&file)?;
        let board = Mapped::new(&file, 0, BOARD_BYTES)?;
        Ok(Arc::new(Self { file, board, leaving: AtomicBool::new(false) }))
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        &self.file
    }

    fn board(&self) -> &Board {
        // SAFETY: the first page of the file; all fields are atomics.
        unsafe { &*self.board.base.cast::<Board>() }
    }

    /// Feeds a ring to a consumer until its process ends, or the host is about to leave.
    pub fn feed(
        self: &Arc<Self>,
        number: u64,
        mut consumer: Box<dyn Consumer>,
    ) -> io::Result<JoinHandle<()>> {
        let place = ring::place(number);
        let mapped = match Mapped::new(&self.file, place, RING_BYTES) {
            Ok(mapped) => mapped,
            Err(error) => {
                self.give_up(place);
                return Err(error);
            }
        };
        let ring = Ring { mapped, place, rings: self.clone() };
        Ok(std::thread::spawn(move || {
            ring.feed(consumer.as_mut());
            consumer.end();
        }))
    }

    /// Tells the owner of a ring that nobody will empty it, without mapping it.
    fn give_up(&self, place: u64) {
        use std::os::unix::fs::FileExt;
        // A failure leaves the process waiting until the host leaves; nothing is left to try.
        let _ = self.file.write_all_at(&1u32.to_le_bytes(), place);
    }

    /// Processes that live on are not listened to much longer.
    pub fn about_to_leave(&self) {
        self.leaving.store(true, Ordering::Release);
    }

    /// From now on nobody empties rings; processes that live on stop waiting for it.
    pub fn leave(&self) {
        self.board().left.store(1, Ordering::Release);
    }
}

/// Makes the file as long as it will ever be; it is all holes. A limit on the length of files is
/// lifted meanwhile, as far as this process may: beyond it the kernel sends a signal.
fn set_length(file: &File) -> io::Result<()> {
    // SAFETY: plain data.
    let mut limit: libc::rlimit = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one limit.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    if limit.rlim_max < ring::FILE_BYTES {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    let lifted = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
    // SAFETY: the kernel reads one limit.
    unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const lifted) };
    let done = file.set_len(ring::FILE_BYTES);
    // SAFETY: as above.
    unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
    done
}

/// A ring that is being emptied.
struct Ring {
    mapped: Mapped,
    place: u64,
    rings: Arc<Rings>,
}

impl Ring {
    fn header(&self) -> &Header {
        // SAFETY: the first page of the ring; all fields are atomics.
        unsafe { &*self.mapped.base.cast::<Header>() }
    }

    /// The contents of a buffer that the runner has handed over.
    fn buffer(&self, index: usize, length: u32) -> &[u8] {
        let offset = HEADER_BYTES + index as u64 * BUFFER_BYTES;
        let length = u64::from(length).min(BUFFER_BYTES) as usize;
        // SAFETY: inside the mapping, and the runner does not touch it until it is free again.
        unsafe { std::slice::from_raw_parts(self.mapped.base.add(offset as usize), length) }
    }

    fn feed(&self, consumer: &mut dyn Consumer) {
        // Of a process that lives on and never stops, as many buffers as it can have filled.
        let mut left = BUFFERS;
        for index in (0..BUFFERS).cycle() {
            let (state, length) = &self.header().buffers[index];
            while !ring::wait_briefly(state, FREE) {
                let over = self.is_leaving() || !self.is_owned();
                if over && state.load(Ordering::Acquire) == FREE {
                    return;
                }
            }
            let last = state.load(Ordering::Acquire) == LAST;
            consumer.records(self.buffer(index, length.load(Ordering::Relaxed)));
            if last {
                return;
            }
            ring::set(state, FREE);
            if self.is_leaving() && self.is_owned() {
                left -= 1;
                if left == 0 {
                    return;
                }
            }
        }
    }

    fn is_leaving(&self) -> bool {
        self.rings.leaving.load(Ordering::Acquire)
    }

    /// Whether the process that fills the ring is alive: it holds the lock.
    fn is_owned(&self) -> bool {
        let mut lock = ring::lock_at(self.place);
        let file = self.rings.file.as_raw_fd();
        // SAFETY: the kernel reads and writes one plain structure.
        let answer = unsafe { libc::fcntl(file, libc::F_GETLK, &raw mut lock) };
        answer == 0 && lock.l_type != libc::F_UNLCK as i16
    }
}

impl Drop for Ring {
    /// Its memory goes back to the system. To a process that lives on, a page of zeros means that
    /// all buffers are free.
    fn drop(&mut self) {
        let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let file = self.rings.file.as_raw_fd();
        // SAFETY: frees pages of a file that is ours.
        unsafe { libc::fallocate(file, hole, self.place as i64, RING_BYTES as i64) };
    }
}
