// finds: data-race
// schedule: random
// Two phases of work that a Barrier keeps apart, or nothing does.
use std::cell::UnsafeCell;
use std::sync::{Arc, Barrier};
use std::thread;

struct Halves([UnsafeCell<u64>; 2]);
// SAFETY: in the clean twin every access is ordered with those of the other thread; in the racy one not, on purpose.
unsafe impl Sync for Halves {}

fn main() {
    let halves = Arc::new(Halves([UnsafeCell::new(0), UnsafeCell::new(0)]));
    let barrier = Arc::new(Barrier::new(2));
    let threads: Vec<_> = (0..2)
        .map(|own| {
            let (halves, barrier) = (halves.clone(), barrier.clone());
            thread::spawn(move || {
                for round in 0..5 {
                    // SAFETY: ordered with the other thread's accesses in the clean twin; in the racy one not, on purpose.
                    unsafe { halves.0[own].get().write_volatile(round) };
                    if cfg!(clean) {
                        barrier.wait();
                    }
                    // SAFETY: ordered with the other thread's accesses in the clean twin; in the racy one not, on purpose.
                    std::hint::black_box(unsafe { halves.0[1 - own].get().read_volatile() });
                    if cfg!(clean) {
                        barrier.wait();
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
