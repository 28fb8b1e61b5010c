// finds: data-race
// A map behind an RwLock, or reached past it by a raw pointer.
use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use std::thread;

fn main() {
    let shared = Arc::new(RwLock::new(BTreeMap::from([(1u32, 0u64)])));
    let address = {
        let guard = shared.read().unwrap();
        &*guard as *const BTreeMap<u32, u64> as usize
    };
    let writer = {
        let shared = shared.clone();
        thread::spawn(move || {
            for value in 0..20 {
                shared.write().unwrap().insert(1, value);
            }
        })
    };
    let mut sum = 0;
    for _ in 0..20 {
        sum += if cfg!(clean) {
            shared.read().unwrap()[&1]
        } else {
            // SAFETY: none: this is the bug.
            unsafe { (&*(address as *const BTreeMap<u32, u64>))[&1] }
        };
    }
    writer.join().unwrap();
    std::hint::black_box(sum);
}
