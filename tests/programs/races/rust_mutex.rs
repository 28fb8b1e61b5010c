// finds: data-race
// schedule: random
// A counter in a Mutex, or behind a raw pointer that is said to be Send.
use std::cell::UnsafeCell;
use std::sync::{Arc, Mutex};
use std::thread;

struct Shared(UnsafeCell<u64>);
// SAFETY: in the clean twin every access is ordered with those of the other thread; in the racy one not, on purpose.
unsafe impl Sync for Shared {}

fn main() {
    let (plain, locked) = (Arc::new(Shared(UnsafeCell::new(0))), Arc::new(Mutex::new(0u64)));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (plain, locked) = (plain.clone(), locked.clone());
            thread::spawn(move || {
                for _ in 0..50 {
                    if cfg!(clean) {
                        *locked.lock().unwrap() += 1;
                    } else {
                        // SAFETY: none: this is the bug.
                        unsafe { *plain.0.get() += 1 };
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
