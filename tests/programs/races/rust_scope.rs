// finds: data-race
// schedule: random
// Scoped threads work on halves of a slice that do not overlap, or by one element do.
use std::thread;

struct Part(*mut u64, usize);
// SAFETY: in the clean twin every access is ordered with those of the other thread; in the racy one not, on purpose.
unsafe impl Send for Part {}

impl Part {
    fn fill(self) {
        for index in 0..self.1 {
            // SAFETY: ordered with the other thread's accesses in the clean twin; in the racy one not, on purpose.
            unsafe { *self.0.add(index) += index as u64 };
        }
    }
}

fn main() {
    let mut values = vec![1u64; 64];
    let start = values.as_mut_ptr();
    let long = if cfg!(clean) { 32 } else { 33 };
    // SAFETY: the vector has 64 elements.
    let (first, second) = (Part(start, long), Part(unsafe { start.add(32) }, 32));
    thread::scope(|scope| {
        scope.spawn(move || first.fill());
        scope.spawn(move || second.fill());
    });
    std::hint::black_box(values.iter().sum::<u64>());
}
