// A panic whose backtrace takes a thousand times as long as the program did before. build: rustc -g; class: rust-panic
fn capacity(asked: usize) -> usize {
    asked.min(4) - 1 // ROOT
}
fn fill(values: &mut [u32], count: usize) {
    for at in 0..count {
        values[at] = at as u32;
    }
}
fn main() {
    // SAFETY: there is one thread.
    unsafe { std::env::set_var("RUST_BACKTRACE", "1") };
    let mut values = vec![0; capacity(9)];
    fill(&mut values, 4);
    println!("{values:?}");
}
