// finds: data-race
// A value behind an AtomicBool with release and acquire; the racy one sets the flag first.
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

struct Shared {
    value: UnsafeCell<u64>,
    ready: AtomicBool,
}
// SAFETY: in the clean twin every access is ordered with those of the other thread; in the racy one not, on purpose.
unsafe impl Sync for Shared {}

fn main() {
    let shared = Arc::new(Shared { value: UnsafeCell::new(0), ready: AtomicBool::new(false) });
    let giver = {
        let shared = shared.clone();
        thread::spawn(move || {
            if cfg!(clean) {
                // SAFETY: the flag that orders this with the reader is set behind it.
                unsafe { shared.value.get().write_volatile(7) };
            }
            shared.ready.store(true, Ordering::Release);
            if !cfg!(clean) {
                // SAFETY: none: this is the bug.
                unsafe { shared.value.get().write_volatile(7) };
            }
        })
    };
    while !shared.ready.load(Ordering::Acquire) {
        thread::yield_now();
    }
    // SAFETY: ordered with the other thread's accesses in the clean twin; in the racy one not, on purpose.
    std::hint::black_box(unsafe { shared.value.get().read_volatile() });
    giver.join().unwrap();
}
