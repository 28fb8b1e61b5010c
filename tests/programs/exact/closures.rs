// build: -C opt-level=1 -C target-feature=+crt-static -C relocation-model=static
// Rust closures and trait objects: boxed, returned, composed, captured by reference and value.
// The C library calls it: std's own start reads /proc/self/maps, which is another one natively.
#![no_main]

trait Weigh {
    fn weigh(&self) -> u64;
}

struct Stone(u64);
struct Bag(Vec<Box<dyn Weigh>>);

impl Weigh for Stone {
    fn weigh(&self) -> u64 {
        self.0
    }
}

impl Weigh for Bag {
    fn weigh(&self) -> u64 {
        self.0.iter().map(|inside| inside.weigh()).sum::<u64>() + 1
    }
}

fn adder(by: u64) -> Box<dyn Fn(u64) -> u64> {
    Box::new(move |n| n + by)
}

#[unsafe(no_mangle)]
pub extern "C" fn main() -> i32 {
    let steps: Vec<Box<dyn Fn(u64) -> u64>> = (0..20).map(adder).collect();
    let mut calls = 0;
    let mut count = |n: u64| {
        calls += 1;
        n
    };
    let sum = steps.iter().fold(1, |value, step| count(step(value)) ^ 5);
    let bag = Bag(vec![Box::new(Stone(3)), Box::new(Bag(vec![Box::new(Stone(sum))]))]);
    std::process::exit((bag.weigh() + calls) as i32 & 127);
}
