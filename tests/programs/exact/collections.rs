// build: -C opt-level=1 -C target-feature=+crt-static -C relocation-model=static
// Rust collections: BTreeMap, VecDeque, BinaryHeap, Rc with RefCell, matching on enums.
// The C library calls it: std's own start reads /proc/self/maps, which is another one natively.
#![no_main]

use std::cell::RefCell;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::rc::Rc;

enum Job {
    Add(u32),
    Double,
    Forget,
}

#[unsafe(no_mangle)]
pub extern "C" fn main() -> i32 {
    let log = Rc::new(RefCell::new(BTreeMap::new()));
    let mut queue: VecDeque<Job> = VecDeque::new();
    for n in 0..40 {
        queue.push_back(match n % 5 {
            0 => Job::Double,
            1 => Job::Forget,
            _ => Job::Add(n),
        });
    }
    let mut value = 1u32;
    let shared = Rc::clone(&log);
    while let Some(job) = queue.pop_front() {
        value = match job {
            Job::Add(n) => value.wrapping_add(n),
            Job::Double => value.wrapping_mul(2),
            Job::Forget => value % 1000,
        };
        shared.borrow_mut().insert(value % 64, queue.len());
    }
    let heap: BinaryHeap<u32> = log.borrow().keys().copied().collect();
    let top: u32 = heap.into_sorted_vec().iter().rev().take(3).sum();
    std::process::exit((top + value) as i32 & 127);
}
