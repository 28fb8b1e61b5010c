// A cell is borrowed twice. build: rustc -g; class: rust-panic
use std::cell::RefCell;
fn add(list: &RefCell<Vec<u32>>, value: u32) {
    list.borrow_mut().push(value);
}
fn main() {
    let list = RefCell::new(vec![1, 2, 3]);
    let held = list.borrow(); // ROOT
    add(&list, held[0]);
    println!("{:?}", held);
}
