// A number that is no number. build: rustc -g; class: rust-panic
fn clean(text: &str) -> &str {
    text.trim_start_matches("0x") // ROOT
}
fn read(text: &str) -> i64 {
    clean(text).parse::<i64>().expect("a number")
}
fn main() {
    println!("{}", read("12"));
    println!("{}", read("0xff"));
}
