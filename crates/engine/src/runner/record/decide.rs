//! Calls that are answered otherwise while a recording is made, because what they do could not be
//! written down. Where the guest has another way it is made to take it; where it has none the
//! recording is refused before it matters.

use super::refuse;
use crate::runner::engine::Engine;
use crate::runner::syscall::Outcome;

/// The answer, if the call is one of these.
pub fn decide(engine: &mut Engine, number: u64, a: [u64; 6]) -> Option<Outcome> {
    engine.recorder.as_ref()?;
    match number as i64 {
        libc::SYS_madvise => advise(a),
        libc::SYS_mmap => map(a),
        libc::SYS_shmat => {
            refuse("the guest attaches System V shared memory, which others can write")
        }
        libc::SYS_clone | libc::SYS_fork => fork(engine, number, a),
        libc::SYS_sendfile => outgoing(engine, a[0]),
        libc::SYS_splice | libc::SYS_copy_file_range => outgoing(engine, a[2]),
        libc::SYS_tee => outgoing(engine, a[1]),
        libc::SYS_futex if wakes(a) => {
            Some(Outcome::Kernel { number, arguments: a, blocks: false })
        }
        libc::SYS_sched_yield => {
            // Who is next is ours to say.
            engine.recorder.as_mut()?.yields = true;
            Some(Outcome::Answer(0))
        }
        // With the baton in hand: what other threads write comes before or after.
        _ if engine.recorder.as_mut()?.outputs.begin(number, a) => {
            Some(Outcome::Kernel { number, arguments: a, blocks: false })
        }
        _ => None,
    }
}

/// Whether a futex operation only wakes others, and so never waits.
pub fn wakes(a: [u64; 6]) -> bool {
    const WAKE_BITSET: i32 = 10;
    const COMMAND: i32 = 0x7f;
    matches!(a[1] as i32 & COMMAND, libc::FUTEX_WAKE | WAKE_BITSET)
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

/// Memory that others can write to.
fn map(a: [u64; 6]) -> Option<Outcome> {
    let [_, _, protection, flags, descriptor, _] = a;
    let (flags, shared) = (flags as i32, flags as i32 & libc::MAP_SHARED != 0);
    if !shared || flags & libc::MAP_ANONYMOUS != 0 || protection as i32 & libc::PROT_WRITE == 0 {
        return None;
    }
    let path = std::fs::read_link(format!("/proc/thread-self/fd/{}", descriptor as i32)).ok()?;
    if path.starts_with("/dev/shm") {
        refuse(&format!(
            "the guest shares memory with others through {}, which they can write at any time",
            path.display()
        ));
    }
    None
}

/// A child that shares writable memory with its parent.
fn fork(engine: &Engine, number: u64, a: [u64; 6]) -> Option<Outcome> {
    let copies = number as i64 == libc::SYS_fork || a[0] & libc::CLONE_VM as u64 == 0;
    let writable = libc::PROT_WRITE;
    let shares = engine.memory.iter().any(|(_, it)| it.shared && it.protection & writable != 0);
    if copies && shares {
        refuse("the guest makes a child that shares writable memory with it");
    }
    None
}

/// What goes to the tool's own output by a way that does not pass through the guest's memory.
fn outgoing(engine: &Engine, descriptor: u64) -> Option<Outcome> {
    let recorder = engine.recorder.as_ref()?;
    recorder.outputs.stream(descriptor).map(|_| Outcome::error(libc::EINVAL))
}
