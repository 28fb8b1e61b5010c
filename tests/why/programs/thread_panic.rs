// A panic in a thread, which main passes on. build: rustc -g; class: rust-panic
use std::thread;
fn share(total: u32, workers: u32) -> u32 {
    total / (workers - 4) // ROOT
}
fn main() {
    let worker = thread::spawn(|| share(100, 4));
    println!("{}", worker.join().unwrap());
}
