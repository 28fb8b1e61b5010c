// finds: data-race
// A value handed over by a Condvar; the racy one is written after the signal.
use std::cell::UnsafeCell;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

struct Shared {
    value: UnsafeCell<u64>,
    ready: Mutex<bool>,
    changed: Condvar,
}
// SAFETY: in the clean twin every access is ordered with those of the other thread; in the racy one not, on purpose.
unsafe impl Sync for Shared {}

fn main() {
    let (value, ready, changed) = (UnsafeCell::new(0), Mutex::new(false), Condvar::new());
    let shared = Arc::new(Shared { value, ready, changed });
    let giver = {
        let shared = shared.clone();
        thread::spawn(move || {
            // SAFETY: ordered with the other thread's accesses in the clean twin; in the racy one not, on purpose.
            let fill = || unsafe { shared.value.get().write_volatile(7) };
            if cfg!(clean) {
                fill();
            }
            *shared.ready.lock().unwrap() = true;
            shared.changed.notify_one();
            if !cfg!(clean) {
                fill();
            }
        })
    };
    let mut ready = shared.ready.lock().unwrap();
    while !*ready {
        ready = shared.changed.wait(ready).unwrap();
    }
    drop(ready);
    // SAFETY: ordered with the other thread's accesses in the clean twin; in the racy one not, on purpose.
    std::hint::black_box(unsafe { shared.value.get().read_volatile() });
    giver.join().unwrap();
}
