// build: -O
// build: -O -C target-feature=+crt-static
// build: -C opt-level=0
// A Rust program: threads and channels, panics caught and not, a child process, overflow checks, hash
// maps, std's own SIGSEGV handler and altstack at start-up.
use std::collections::{BTreeMap, HashMap};
use std::process::Command;
use std::sync::{Arc, Mutex, RwLock, mpsc};
use std::thread;

fn main() {
    std::panic::set_hook(Box::new(|_| println!("a panic")));
    let caught = std::panic::catch_unwind(|| {
        let list = vec![1, 2, 3];
        let index = std::env::args().count() + 5;
        list[index]
    });
    println!("caught {}", caught.is_err());

    let (send, receive) = mpsc::channel();
    for worker in 0..4u64 {
        let send = send.clone();
        thread::spawn(move || {
            for i in 0..500 {
                send.send(worker * 1000 + i).unwrap();
            }
        });
    }
    drop(send);
    println!("sum {}", receive.iter().sum::<u64>());

    let counts = Arc::new(Mutex::new(BTreeMap::new()));
    let table = Arc::new(RwLock::new(HashMap::new()));
    thread::scope(|scope| {
        for worker in 0..4 {
            let (counts, table) = (counts.clone(), table.clone());
            scope.spawn(move || {
                for i in 0..200 {
                    *counts.lock().unwrap().entry(i % 10).or_insert(0) += worker;
                    table.write().unwrap().insert(i * 4 + worker, i);
                    assert!(table.read().unwrap().contains_key(&(i * 4 + worker)));
                }
            });
        }
    });
    println!("{:?} {}", counts.lock().unwrap(), table.read().unwrap().len());

    let died = thread::spawn(|| -> i32 { panic!("in a thread") }).join();
    println!("thread {}", died.is_err());
    let output = Command::new("sh").args(["-c", "echo child; exit 3"]).output().unwrap();
    println!("{} {:?}", String::from_utf8_lossy(&output.stdout).trim(), output.status.code());
    println!("{:?}", Command::new("/no/such/program").spawn().map_err(|e| e.kind()).err());
    let deep = thread::Builder::new().stack_size(64 << 20).spawn(|| depth(200_000)).unwrap();
    println!("depth {}", deep.join().unwrap());
}

/// What `std::hint::black_box` is in newer compilers.
fn opaque(value: u64) -> u64 {
    // SAFETY: it is a reference to a number.
    unsafe { std::ptr::read_volatile(&value) }
}

fn depth(n: u64) -> u64 {
    if n == 0 { 0 } else { 1 + opaque(depth(n - 1)) }
}
