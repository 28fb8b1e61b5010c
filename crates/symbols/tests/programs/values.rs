//! Every kind of Rust value. `stop_here` is where the test looks.
#![allow(dead_code)]
use std::hint::black_box;

static GREETING: &str = "hello";
static mut COUNTER: u32 = 7;

#[derive(Clone, Debug)]
struct Point {
    x: i32,
    y: i32,
}

#[derive(Debug)]
enum Shape {
    Empty,
    Circle(Point, f64),
    Named { name: String, sides: Vec<u16> },
}

struct Pair(u8, char);

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn stop_here() {
    black_box(0);
}

#[inline(never)]
fn look(shape: &Shape, numbers: &[i64], word: &str) -> usize {
    let some: Option<u32> = Some(black_box(5));
    let none: Option<u32> = None;
    let boxed: Option<Box<i32>> = Some(Box::new(black_box(9)));
    let nothing: Option<Box<i32>> = None;
    let circle = Shape::Circle(Point { x: 1, y: black_box(-2) }, 0.5);
    let empty = Shape::Empty;
    let tuple = (1u8, -2i16, 'é', true);
    let pair = Pair(3, 'z');
    let array = [Point { x: 4, y: 5 }, Point { x: 6, y: 7 }];
    let failed: Result<u8, String> = Err(String::from("bad"));
    let unit = ();
    stop_here();
    black_box((&some, &none, &boxed, &nothing, &circle, &empty, &tuple, &pair.0, &array));
    black_box((&failed, &unit, &pair, shape));
    numbers.len() + word.len()
}

fn main() {
    let sides = vec![10, 20, 30];
    let shape = Shape::Named { name: "box".to_string(), sides };
    let numbers = [1i64, -2, 3];
    let total = look(&shape, &numbers[..2], "wörd"); // SAFETY, of the next line: there is one thread.
    unsafe { COUNTER += total as u32 };
    black_box(GREETING);
}
