// A lock is taken twice by one thread. build: rustc -g; class: waiting,deadlock; timeout: 1
use std::sync::Mutex;
static TOTAL: Mutex<u32> = Mutex::new(1);
fn read() -> u32 {
    *TOTAL.lock().unwrap()
}
fn main() {
    let mut total = TOTAL.lock().unwrap(); // ROOT
    *total += read();
    println!("{total}");
}
