// An index beyond the end of a slice. build: rustc -g; class: rust-panic
fn middle(count: usize) -> usize {
    count + count / 2 // ROOT
}
fn pick(values: &[u32]) -> u32 {
    let at = middle(values.len());
    values[at]
}
fn main() {
    let values = vec![3, 1, 4, 1, 5];
    println!("{}", pick(&values));
}
