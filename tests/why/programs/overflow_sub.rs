// A difference that is below zero. build: rustc -g; class: rust-panic
fn remaining(total: u32, used: &[u32]) -> u32 {
    let mut sum = 0;
    for one in used {
        sum += one * 2; // ROOT
    }
    total - sum
}
fn main() {
    println!("{}", remaining(100, &[10, 20]));
    println!("{}", remaining(100, &[30, 40]));
}
