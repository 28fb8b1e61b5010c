// A loop whose step is zero. build: rustc -g; class: endless-loop; timeout: 1
fn step(width: usize) -> usize {
    width / 100 // ROOT
}
fn columns(width: usize) -> usize {
    let (mut at, mut count) = (0, 0);
    while at < width {
        at += step(width);
        count += 1 & at;
    }
    count
}
fn main() {
    println!("{}", columns(80));
}
