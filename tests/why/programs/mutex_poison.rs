// A panic while a lock is held. build: rustc -g; class: rust-panic
use std::sync::{Arc, Mutex};
use std::thread;
fn main() {
    let total = Arc::new(Mutex::new(vec![1u32]));
    let shared = Arc::clone(&total);
    let worker = thread::spawn(move || {
        let values = shared.lock().unwrap();
        let at = values.len() + 3; // ROOT
        values[at]
    });
    let _ = worker.join();
    println!("{:?}", total.lock().unwrap());
}
