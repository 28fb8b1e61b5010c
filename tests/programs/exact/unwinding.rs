// build: -C opt-level=1 -C target-feature=+crt-static
// A Rust panic caught: unwinding through frames with destructors; arithmetic that is checked.
// The C library calls it: std's own start reads /proc/self/maps, which is another one natively.
#![no_main]

struct Counted<'a>(&'a std::cell::Cell<i32>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

fn descend(depth: u32, cell: &std::cell::Cell<i32>) -> u32 {
    let _counted = Counted(cell);
    if depth == 0 { std::panic::panic_any("the bottom") } else { descend(depth - 1, cell) + 1 }
}

#[unsafe(no_mangle)]
pub extern "C" fn main() -> i32 {
    std::panic::set_hook(Box::new(|_| {}));
    let cell = std::cell::Cell::new(0);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| descend(5, &cell)));
    let sum = 200u8.checked_add(100).map_or(7, i32::from);
    std::process::exit(cell.get() * 10 + i32::from(caught.is_err()) + sum);
}
