// finds: data-race
// schedule: random
// A OnceLock, or a `static mut` with a flag.
use std::sync::OnceLock;
use std::thread;

static ONCE: OnceLock<u64> = OnceLock::new();
static mut MADE: bool = false;
static mut VALUE: u64 = 0;

fn get() -> u64 {
    if cfg!(clean) {
        return *ONCE.get_or_init(|| 7);
    }
    // SAFETY: none: this is the bug.
    unsafe {
        if !(&raw const MADE).read_volatile() {
            (&raw mut VALUE).write_volatile(7);
            (&raw mut MADE).write_volatile(true);
        }
        (&raw const VALUE).read_volatile()
    }
}

fn main() {
    let threads: Vec<_> = (0..2).map(|_| thread::spawn(get)).collect();
    for thread in threads {
        std::hint::black_box(thread.join().unwrap());
    }
}
