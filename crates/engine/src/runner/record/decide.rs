//! Calls that are answered otherwise while a recording is made, because what they do could not be
//! written down. Where the guest has another way it is made to take it; where it has none the
//! recording is refused before it matters.

use super::{handed, made, refuse, tree, waits};
use crate::runner::engine::Engine;
use crate::runner::procfs;
use crate::runner::syscall::Outcome;
use crate::sys::syscall;
use std::os::unix::ffi::OsStrExt;

/// The answer, if the call is one of these.
pub fn decide(engine: &mut Engine, number: u64, a: [u64; 6]) -> Option<Outcome> {
    if engine.is_recorded() && is_late_futex(number) {
        return Some(Outcome::error(libc::ENOSYS));
    }
    if matches!(number as i64, libc::SYS_clone | libc::SYS_fork) && engine.is_recorded() {
        fork(engine, number, a);
    }
    if matches!(number as i64, libc::SYS_sendmsg | libc::SYS_sendmmsg) && engine.is_recorded() {
        handed::sends(engine, number, a);
    }
    engine.log.recorder.as_ref()?;
    match number as i64 {
        // The kernel would write to the guest's memory at any time; programs have another way.
        libc::SYS_io_setup => Some(Outcome::error(libc::ENOSYS)),
        libc::SYS_madvise => advise(a),
        libc::SYS_mmap => {
            map(engine, a);
            None
        }
        libc::SYS_shmat => {
            attach(engine, a);
            None
        }
        // The same pages at a second place, which a replay does not have.
        libc::SYS_mremap if a[1] == 0 => Some(Outcome::error(libc::EINVAL)),
        libc::SYS_sendfile => outgoing(engine, a[0]),
        libc::SYS_splice | libc::SYS_copy_file_range => outgoing(engine, a[2]),
        libc::SYS_tee => outgoing(engine, a[1]),
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => waits::sleep(engine, number, a),
        libc::SYS_sched_yield => {
            // Who is next is ours to say.
            engine.log.recorder.as_mut()?.yields = true;
            Some(Outcome::Answer(0))
        }
        // With the baton in hand: what other threads write comes before or after.
        _ if engine.log.recorder.as_mut()?.outputs.begin(number, a) => {
            Some(Outcome::Kernel { number, arguments: a, blocks: false })
        }
        _ => None,
    }
}

/// Newer ways to wait, which nobody needs and `runner/futex.rs` does not know.
fn is_late_futex(number: u64) -> bool {
    const WAKE: i64 = 454;
    const REQUEUE: i64 = 456;
    number as i64 == libc::SYS_futex_waitv || (WAKE..=REQUEUE).contains(&(number as i64))
}

/// Pages that the kernel may or may not empty, and what happens to them in children.
fn advise(a: [u64; 6]) -> Option<Outcome> {
    match a[2] as i32 {
        // Keeping what is there is always right.
        libc::MADV_FREE => Some(Outcome::Answer(0)),
        libc::MADV_WIPEONFORK | libc::MADV_DONTFORK => Some(Outcome::error(libc::EINVAL)),
        _ => None,
    }
}

/// Memory that others can write to: those of the recording take turns, with anyone else there is no
/// telling.
fn map(engine: &mut Engine, a: [u64; 6]) {
    let [_, _, protection, flags, descriptor, _] = a;
    let (flags, shared) = (flags as i32, flags as i32 & libc::MAP_SHARED != 0);
    if !shared || flags & libc::MAP_ANONYMOUS != 0 {
        return;
    }
    let Some(path) = procfs::link(descriptor) else { return };
    // The second is the beginning of a name, not a folder.
    let is_memory =
        path.starts_with("/dev/shm") || path.as_os_str().as_bytes().starts_with(b"/memfd:");
    if !is_memory && protection as i32 & libc::PROT_WRITE == 0 {
        return;
    }
    if is_memory && made::is_foreign_file(descriptor) {
        refuse(
            engine,
            &format!(
                "the guest shares memory with processes that are not recorded, through {}, which they \
             can write at any time",
                path.display()
            ),
        );
    }
    if let Some(recorder) = &mut engine.log.recorder
        && is_memory
    {
        recorder.outsiders.watch(descriptor, &path);
        made::name(descriptor).into_iter().for_each(made::maps);
    }
    tree::joins(engine);
}

/// A segment of System V's.
fn attach(engine: &mut Engine, a: [u64; 6]) {
    if made::is_foreign(made::Name::Segment(a[0])) {
        refuse(
            engine,
            "the guest attaches System V shared memory of processes that are not recorded, which \
             they can write at any time",
        );
    }
    if is_attached(a[0]) {
        refuse(engine, "the guest attaches the same System V shared memory at a second place");
    }
    tree::joins(engine);
}

fn is_attached(segment: u64) -> bool {
    let maps = procfs::text("maps");
    let segment = segment.to_string();
    maps.lines().any(|line| {
        let mut words = line.split_ascii_whitespace().skip(4);
        words.next() == Some(&segment) && words.next().is_some_and(|name| name.starts_with("/SYSV"))
    })
}

/// A child that shares memory with its parent.
fn fork(engine: &mut Engine, number: u64, a: [u64; 6]) {
    if number as i64 == libc::SYS_fork || a[0] & libc::CLONE_VM as u64 == 0 {
        tree::before_fork(engine);
    }
}

/// Whether a call of a process whose baton others want is over soon, though the kernel may have to
/// look something up: the baton is kept, so that the schedule does not depend on how fast it is.
pub fn stays_here(engine: &Engine, number: u64, a: [u64; 6]) -> bool {
    if engine.log.recorder.is_none() || engine.threads.list.is_empty() && !super::is_member(engine)
    {
        return false;
    }
    match number as i64 {
        libc::SYS_read
        | libc::SYS_pread64
        | libc::SYS_readv
        | libc::SYS_preadv
        | libc::SYS_write
        | libc::SYS_pwrite64
        | libc::SYS_writev
        | libc::SYS_pwritev
        | libc::SYS_ftruncate
        | libc::SYS_fallocate
        | libc::SYS_getdents64 => is_file(a[0]),
        libc::SYS_kill => !may_stop(a[1]),
        libc::SYS_tgkill => !may_stop(a[2]),
        libc::SYS_open => is_file_named(libc::AT_FDCWD as u64, a[0]),
        libc::SYS_openat => is_file_named(a[0], a[1]),
        libc::SYS_close
        | libc::SYS_readlink
        | libc::SYS_readlinkat
        | libc::SYS_faccessat
        | libc::SYS_faccessat2
        | libc::SYS_statx
        | libc::SYS_statfs
        | libc::SYS_fstatfs
        | libc::SYS_unlink
        | libc::SYS_unlinkat
        | libc::SYS_rename
        | libc::SYS_mkdir
        | libc::SYS_rmdir
        | libc::SYS_umask
        | libc::SYS_prctl
        | libc::SYS_socket
        | libc::SYS_sched_setaffinity
        | libc::SYS_sched_getscheduler
        | libc::SYS_sched_setscheduler => true,
        libc::SYS_fcntl => a[1] as i32 != libc::F_SETLKW && a[1] as i32 != libc::F_OFD_SETLKW,
        _ => false,
    }
}

fn is_quick(mode: u32) -> bool {
    matches!(mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFDIR)
}

fn is_file(descriptor: u64) -> bool {
    let mut status = [0u64; 18];
    // SAFETY: the kernel writes one `struct stat`, 144 bytes.
    let answer = unsafe { syscall!(libc::SYS_fstat, descriptor, status.as_mut_ptr()) };
    answer == 0 && is_quick(status[3] as u32)
}

/// Whether a path leads to a file or folder, or nowhere: opening a pipe waits for its other end.
fn is_file_named(directory: u64, path: u64) -> bool {
    let mut status = [0u64; 18];
    // SAFETY: the kernel checks the guest's path and writes one `struct stat`, 144 bytes.
    let answer = unsafe { syscall!(libc::SYS_newfstatat, directory, path, status.as_mut_ptr(), 0) };
    answer != 0 || is_quick(status[3] as u32)
}

/// What goes to the tool's own output by a way that does not pass through the guest's memory.
fn outgoing(engine: &Engine, descriptor: u64) -> Option<Outcome> {
    let recorder = engine.log.recorder.as_ref()?;
    recorder.outputs.stream(descriptor).map(|_| Outcome::error(libc::EINVAL))
}

/// Whether a signal may stop this process while the call that sends it is made: then the others must be
/// able to go on, one of which continues it.
fn may_stop(signal: u64) -> bool {
    let stops = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    stops.contains(&(signal as i32)) || is_traced()
}

/// Whether another process hears of every signal first.
fn is_traced() -> bool {
    let status = procfs::text("status");
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|number| number.trim() != "0")
}
