// finds: data-race
// schedule: random
// Whoever drops the last Arc frees the value; the racy one uses it by a pointer after its drop.
use std::sync::Arc;
use std::thread;

fn main() {
    let shared = Arc::new(vec![1u64, 2, 3]);
    let other = {
        let shared = shared.clone();
        thread::spawn(move || {
            let pointer = shared.as_ptr() as usize;
            let mut sum = shared[1];
            if !cfg!(clean) {
                drop(shared);
                thread::yield_now();
                // SAFETY: none: this is the bug.
                sum += unsafe { (pointer as *const u64).add(1).read_volatile() };
            }
            std::hint::black_box(sum);
        })
    };
    thread::yield_now();
    drop(shared);
    other.join().unwrap();
}
