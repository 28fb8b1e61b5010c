// build: -O
// Threads, channels, a hash map with random keys: the order of nearly everything is new every time.
use std::collections::HashMap;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

fn main() {
    let begun = Instant::now();
    let shared = Arc::new(Mutex::new(Vec::new()));
    let (sender, receiver) = channel();
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let (sender, shared) = (sender.clone(), shared.clone());
            std::thread::spawn(move || {
                for round in 0..30 {
                    sender.send(number * 100 + round).expect("a receiver");
                    shared.lock().expect("a lock").push(number);
                    if round % 10 == 0 {
                        std::thread::sleep(Duration::from_micros(50));
                    }
                }
            })
        })
        .collect();
    drop(sender);
    let trace = receiver.iter().fold(0_u64, |sum, value| sum.wrapping_mul(31) + value);
    for thread in threads {
        thread.join().expect("a thread");
    }
    let order: String = shared.lock().expect("a lock").iter().map(|n| (b'a' + *n as u8) as char).collect();
    let map: HashMap<u32, u32> = (0..12).map(|key| (key, key * key)).collect();
    println!("trace {trace:x}\norder {order}\nmap {map:?}");
    println!("took {:?}, at {:?}", begun.elapsed(), SystemTime::now());
    println!("ok");
}
