//! Locals whose frame base rustc puts into rsp.
fn twice(x: u64) -> u64 {
    x * 2
}
fn main() {
    let n = std::env::args().count() as u64;
    let a = twice(n) + 3; // made
    let b = a * 10; // tenfold
    println!("{a} {b}"); // shown
}
