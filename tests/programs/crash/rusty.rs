//! Rust: a read through a null pointer in a generic function, a panic that may not unwind, runaway
//! recursion, which the standard library's own handler turns into SIGABRT.

use std::hint::black_box;

struct Account {
    owner: String,
    balance: i64,
}
// SAFETY: none, on purpose: callers pass what must not be read.
fn field<T: Copy>(pointer: *const T) -> T {
    unsafe { pointer.read_volatile() }
}
// SAFETY: an address is formed and not read; reading it is the crash that this program is for.
fn balance(account: *const Account) -> i64 {
    field(unsafe { &raw const (*account).balance })
}

extern "C" fn callback(index: usize) -> i64 {
    let accounts = [Account { owner: "anne".into(), balance: 3 }];
    accounts[black_box(index)].balance + accounts[0].owner.len() as i64
}

#[allow(unconditional_recursion)]
fn descend(depth: u64) -> u64 {
    let kept = black_box([depth; 32]);
    descend(depth + 1) + kept[3]
}

fn main() {
    let answer = match std::env::args().nth(1).as_deref() {
        Some("null") => balance(black_box(std::ptr::null())),
        Some("panic") => callback(7),
        Some("deep") => descend(0) as i64,
        _ => 3,
    };
    println!("{answer}");
}
