// finds: data-race
// A buffer handed over through a channel, or used on both sides.
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

struct Shared(UnsafeCell<[u8; 16]>);
// SAFETY: in the clean twin every access is ordered with those of the other thread; in the racy one not, on purpose.
unsafe impl Sync for Shared {}

fn main() {
    let (sender, receiver) = channel();
    let shared = Arc::new(Shared(UnsafeCell::new([0; 16])));
    let other = shared.clone();
    let thread = thread::spawn(move || {
        // SAFETY: ordered with the other thread's accesses in the clean twin; in the racy one not, on purpose.
        unsafe { (*other.0.get())[3] = 7 };
        sender.send(()).unwrap();
        if !cfg!(clean) {
            // SAFETY: none: this is the bug.
            unsafe { (*other.0.get())[3] = 8 };
        }
    });
    receiver.recv().unwrap();
    // SAFETY: ordered with the other thread's accesses in the clean twin; in the racy one not, on purpose.
    assert_ne!(unsafe { std::ptr::read_volatile(shared.0.get()) }[3], 0);
    thread.join().unwrap();
}
