//! Memory that the guest has made can be handed to anyone through a socket. Who is not recorded and
//! may write to it makes it theirs as well, from before they have it.

use super::files;
use super::made;
use super::refuse;
use crate::runner::engine::Engine;
use crate::runner::guest::{read_u32, read_u64};
use crate::sys::syscall;
use std::path::PathBuf;

/// Messages of one call, descriptors of one message: what the kernel allows.
const MOST_MESSAGES: u64 = 1024;
const MOST_DESCRIPTORS: usize = 253;

/// A message is about to be sent, or several.
pub fn sends(engine: &mut Engine, number: u64, a: [u64; 6]) {
    const MESSAGE_OF_SEVERAL: u64 = 64;
    let messages = if number as i64 == libc::SYS_sendmmsg { a[2].min(MOST_MESSAGES) } else { 1 };
    for index in 0..messages {
        let message = a[1].wrapping_add(index * MESSAGE_OF_SEVERAL);
        for descriptor in descriptors(message).unwrap_or_default() {
            hand(engine, a[0], descriptor);
        }
    }
}

/// The descriptors in the control part of a `struct msghdr`.
fn descriptors(message: u64) -> Option<Vec<u64>> {
    /// Of `struct cmsghdr`: length, level and type.
    const HEAD: u64 = 16;
    let mut at = read_u64(message.wrapping_add(32))?;
    let mut left = read_u64(message.wrapping_add(40))?;
    let mut found = Vec::new();
    while left >= HEAD && found.len() < MOST_DESCRIPTORS {
        let length = read_u64(at)?;
        if length < HEAD || length > left {
            break;
        }
        let level = read_u32(at.wrapping_add(8))? as i32;
        let kind = read_u32(at.wrapping_add(12))? as i32;
        if (level, kind) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            let numbers = (HEAD..length).step_by(4).take(MOST_DESCRIPTORS);
            found.extend(
                numbers.filter_map(|offset| read_u32(at.wrapping_add(offset))).map(u64::from),
            );
        }
        let step = length.next_multiple_of(8).min(left);
        (at, left) = (at.wrapping_add(step), left - step);
    }
    Some(found)
}

fn hand(engine: &mut Engine, socket: u64, descriptor: u64) {
    let Some(name) = made::name(descriptor) else { return };
    if !is_writable(descriptor) || made::is_foreign(name) || is_recorded(engine, socket) {
        return;
    }
    if engine.log.recorder.is_some() && made::is_mapped(name) {
        refuse(
            engine,
            "the guest hands memory that it shares through a socket to a process that is not \
             recorded, which can write to it at any time",
        );
    }
    made::give_away(name);
}

/// Whether who gets a descriptor can write what is behind it.
fn is_writable(descriptor: u64) -> bool {
    // SAFETY: both only ask.
    let (flags, seals) = unsafe {
        (
            syscall!(libc::SYS_fcntl, descriptor, libc::F_GETFL),
            syscall!(libc::SYS_fcntl, descriptor, libc::F_GET_SEALS),
        )
    };
    let sealed = libc::F_SEAL_WRITE | libc::F_SEAL_FUTURE_WRITE;
    let reads_only = flags as i32 & libc::O_ACCMODE == libc::O_RDONLY;
    flags >= 0 && !reads_only && (seals < 0 || seals as i32 & sealed == 0)
}

/// Whether the other end of a socket belongs to a process of this recording: by its number, or where
/// this process has other numbers than the host because all of them have the same way to the host.
/// Where the kernel does not tell whose it is, it is not.
fn is_recorded(engine: &Engine, socket: u64) -> bool {
    let mut peer = [0i32; 3];
    let mut length = size_of_val(&peer) as u32;
    let level = libc::SOL_SOCKET;
    // SAFETY: the kernel writes one `struct ucred`, 12 bytes.
    let answer = unsafe {
        let (peer, length) = (peer.as_mut_ptr(), &raw mut length);
        syscall!(libc::SYS_getsockopt, socket, level, libc::SO_PEERCRED, peer, length)
    };
    if answer == 0 && engine.process.numbers.is_hosts() && files::is_recorded(peer[0]) {
        return true;
    }
    let own = channel(engine, "self");
    answer == 0 && peer[0] > 0 && own.is_some() && channel(engine, &peer[0].to_string()) == own
}

fn channel(engine: &Engine, process: &str) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{process}/fd/{}", engine.config.channel)).ok()
}
