// finds: lock-order
// Two mutexes in both orders, or in one.
use std::sync::{Arc, Mutex};
use std::thread;

fn main() {
    let locks = Arc::new([Mutex::new(0u64), Mutex::new(0u64)]);
    let work = |first: usize, second: usize| {
        let locks = locks.clone();
        thread::spawn(move || {
            let mut one = locks[first].lock().unwrap();
            let mut other = locks[second].lock().unwrap();
            (*one, *other) = (*other + 1, *one + 1);
        })
    };
    let threads = [work(0, 1), if cfg!(clean) { work(0, 1) } else { work(1, 0) }];
    for thread in threads {
        thread.join().unwrap();
    }
}
