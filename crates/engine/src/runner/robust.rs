//! Robust futexes: when a thread ends, those that it holds are marked, so that others do not wait for
//! ever. The kernel does this by itself, except while recording, where it must not write to the
//! guest's memory at a time of its own choice.

use super::engine::Engine;
use super::futex;
use super::guest::{Checked, read_u32, read_u64};
use super::signal::frame::GuestMemory;

const OWNER: u32 = 0x3fff_ffff;
const DIED: u32 = 0x4000_0000;
const WAITERS: u32 = 0x8000_0000;
/// The kernel gives up on longer lists too.
const LONGEST: usize = 2048;

/// Marks what thread `tid` holds, by its list: next entry, offset from entry to word, entry that
/// was being taken or released.
pub fn release(engine: &mut Engine, head: u64, tid: i32) {
    if head == 0 {
        return;
    }
    let word = |index: u64| read_u64(head.wrapping_add(8 * index));
    let (Some(first), Some(offset), Some(pending)) = (word(0), word(1), word(2)) else { return };
    let mut entry = first & !1;
    for _ in 0..LONGEST {
        if entry == head || entry == 0 {
            break;
        }
        let next = read_u64(entry);
        if entry != pending & !1 {
            mark(engine, entry.wrapping_add(offset), tid);
        }
        match next {
            Some(next) => entry = next & !1,
            None => break,
        }
    }
    if pending & !1 != 0 {
        mark(engine, (pending & !1).wrapping_add(offset), tid);
    }
}

fn mark(engine: &mut Engine, address: u64, tid: i32) {
    let Some(value) = read_u32(address).filter(|value| value & OWNER == tid as u32) else { return };
    let marked = value & WAITERS | DIED;
    Checked.write(address, &marked.to_le_bytes());
    if value & WAITERS != 0 {
        futex::wake_one(engine, address);
    }
}
