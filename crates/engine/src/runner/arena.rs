//! The runner's heap: size classes with free lists over one reserved range.
//!
//! The runner may not use libc's allocator: that one grows by `brk` and by mappings of the
//! kernel's choosing, both of which belong to the guest. In the host process the same allocator
//! hands everything to the system's.
//!
//! Blocks are powers of two from 16 bytes. The heap never shrinks; a fork copies it like all else.

use crate::layout;
use crate::sys;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The allocator of every binary that can become a runner.
pub struct Allocator;

static IN_RUNNER: AtomicBool = AtomicBool::new(false);
static LOCK: AtomicBool = AtomicBool::new(false);
static NEXT: AtomicU64 = AtomicU64::new(layout::HEAP.start);
static MAPPED_UP_TO: AtomicU64 = AtomicU64::new(layout::HEAP.start);
static FREE: [AtomicUsize; CLASSES] = [const { AtomicUsize::new(0) }; CLASSES];

const CLASSES: usize = 48;
const SMALLEST_SHIFT: u32 = 4;
const GROWTH: u64 = 4 << 20;

/// From now on this process is a runner and allocates from its own range.
pub fn enter_runner() {
    IN_RUNNER.store(true, Ordering::SeqCst);
}

/// Forgets a lock that another thread may have held while this process was forked.
pub fn after_fork() {
    LOCK.store(false, Ordering::SeqCst);
}

fn owns(pointer: *mut u8) -> bool {
    layout::HEAP.contains(&(pointer as u64))
}

fn class_of(layout: Layout) -> usize {
    let bytes = layout.size().max(layout.align()).max(1 << SMALLEST_SHIFT).next_power_of_two();
    (bytes.trailing_zeros() - SMALLEST_SHIFT) as usize
}

struct Guard;

impl Guard {
    fn lock() -> Self {
        while LOCK.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        Self
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        LOCK.store(false, Ordering::Release);
    }
}

fn take(class: usize) -> *mut u8 {
    let _guard = Guard::lock();
    let head = FREE[class].load(Ordering::Relaxed);
    if head != 0 {
        // SAFETY: a block on a free list holds the address of the next one in its first word.
        let next = unsafe { *(head as *const usize) };
        FREE[class].store(next, Ordering::Relaxed);
        return head as *mut u8;
    }
    let bytes = 1u64 << (class as u32 + SMALLEST_SHIFT);
    let start = NEXT.load(Ordering::Relaxed).next_multiple_of(bytes.min(4096));
    let end = start + bytes;
    if end > MAPPED_UP_TO.load(Ordering::Relaxed) && !grow(end) {
        return std::ptr::null_mut();
    }
    NEXT.store(end, Ordering::Relaxed);
    start as *mut u8
}

fn grow(end: u64) -> bool {
    let from = MAPPED_UP_TO.load(Ordering::Relaxed);
    let to = end.next_multiple_of(GROWTH);
    if to > layout::HEAP.end {
        return false;
    }
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the range is the heap's own and not yet in use.
    let mapped = unsafe { sys::map_fixed(from, to - from, protection, flags, -1, 0) };
    if mapped.is_ok() {
        MAPPED_UP_TO.store(to, Ordering::Relaxed);
    }
    mapped.is_ok()
}

// SAFETY: blocks are disjoint, aligned to their size up to a page, and handed out once until
// freed; everything else is the system allocator's word.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IN_RUNNER.load(Ordering::Relaxed) {
            return take(class_of(layout));
        }
        // SAFETY: same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if !owns(pointer) {
            // What was allocated before the process became a runner is left where it is: libc's
            // heap is no longer grown or trimmed then.
            if !IN_RUNNER.load(Ordering::Relaxed) {
                // SAFETY: not ours, so the system's.
                unsafe { System.dealloc(pointer, layout) }
            }
            return;
        }
        let _guard = Guard::lock();
        let class = class_of(layout);
        let head = FREE[class].load(Ordering::Relaxed);
        // SAFETY: the block is free now and at least one word long.
        unsafe { *pointer.cast::<usize>() = head };
        FREE[class].store(pointer as usize, Ordering::Relaxed);
    }
}
