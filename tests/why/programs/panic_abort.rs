// A panic that aborts. build: rustc -g -C panic=abort; class: rust-panic
fn parse(text: &str) -> i32 {
    let cut = &text[1..]; // ROOT
    cut.parse().unwrap()
}
fn main() {
    println!("{}", parse("=12"));
    println!("{}", parse("7"));
}
