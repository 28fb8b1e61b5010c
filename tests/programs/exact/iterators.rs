// build: -C opt-level=1 -C target-feature=+crt-static -C relocation-model=static
// Rust iterators: chains of map, filter, zip, windows, fold, sort and strings.
// The C library calls it: std's own start reads /proc/self/maps, which is another one natively.
#![no_main]

#[unsafe(no_mangle)]
pub extern "C" fn main() -> i32 {
    let numbers: Vec<u32> = (1..60).map(|n| n * n % 37).filter(|n| n % 3 != 0).collect();
    let rises = numbers.windows(2).filter(|pair| pair[0] < pair[1]).count();
    let mixed: u32 = numbers.iter().zip(numbers.iter().rev()).map(|(a, b)| a * b).sum();
    let mut sorted = numbers.clone();
    sorted.sort_unstable_by_key(|n| std::cmp::Reverse(*n));
    let text: String = sorted.iter().take(10).map(|n| char::from(b'a' + (*n as u8) % 26)).collect();
    let vowels = text.chars().filter(|c| "aeiou".contains(*c)).count();
    std::process::exit((rises as u32 + mixed + vowels as u32) as i32 & 127);
}
