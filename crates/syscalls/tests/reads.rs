//! The table of what system calls read, held against the kernel: it answers EFAULT where it would have
//! to read memory that is not there.
//!
//! Of each object that a call is given a pointer to, exactly as many bytes are there as the table says
//! are read, and behind them nothing is mapped: the call must not fault. With one byte less it must, or
//! take less than before. So the table can be neither too small nor too large.

#[path = "reads/memory.rs"]
mod memory;
#[path = "reads/rows.rs"]
mod rows;

use memory::Memory;
use rows::{Given, Row};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Whether an answer is EFAULT; one call answers in the lower half only.
fn faulted(answer: i64) -> bool {
    answer as i32 == -14
}

/// The program that makes the calls.
struct Maker {
    child: Child,
    lines: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Maker {
    fn start(folder: &Path) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reads/make_calls.c");
        let program = folder.join("make_calls");
        let mut compiler = Command::new("gcc");
        compiler.args(["-O1", "-Wall", "-Wno-unused-result", "-o"]).arg(&program).arg(source);
        assert!(compiler.status().expect("gcc is there").success());
        let mut child = Command::new(program)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = child.stdin.take().expect("a pipe");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, lines, answers }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        line.trim().to_owned()
    }

    /// Makes a call and returns its answer.
    fn make(&mut self, number: u64, arguments: [u64; 6], memory: &Memory) -> i64 {
        let mut line = format!("{number:x}");
        for argument in arguments {
            write!(line, " {argument:x}").expect("a string takes all");
        }
        for object in (0..memory.len()).filter(|object| !memory.contents(*object).is_empty()) {
            write!(line, " {:x}:", memory.address(object)).expect("a string takes all");
            for byte in memory.contents(object) {
                write!(line, "{byte:02x}").expect("a string takes all");
            }
        }
        writeln!(self.lines, "{line}").expect("it listens");
        self.line().parse().expect("a number")
    }

    fn end(mut self) {
        drop(self.lines);
        assert!(self.child.wait().expect("it ends").success());
    }
}

/// What has been found out of a call.
#[derive(PartialEq, Eq)]
enum Found {
    /// The table is right.
    Right,
    /// The kernel did not get as far as reading all.
    Refused(i64),
    /// The table is wrong.
    Wrong(String),
}

fn arguments(given: &[Given], memory: &Memory, places: &[usize]) -> [u64; 6] {
    let mut places = places.iter();
    let mut arguments = [0; 6];
    for (argument, given) in arguments.iter_mut().zip(given) {
        *argument = match given {
            Given::Number(number) => *number,
            Given::Pointer(_) => memory.address(*places.next().expect("one an object")),
        };
    }
    arguments
}

/// How much of each object the table says is read.
fn told(number: u64, arguments: [u64; 6], memory: &Memory) -> Vec<u64> {
    let mut reads = Vec::new();
    assert_eq!(syscalls::reads(number, arguments, memory, &mut reads), syscalls::Known::Yes);
    let mut extents = vec![0; memory.len()];
    for read in reads {
        // Room for output is no object.
        let Some(object) = memory.find(read.range.address) else { continue };
        let end = read.range.address + read.range.length - memory.address(object);
        extents[object] = end.max(extents[object]);
    }
    extents
}

fn judge(maker: &mut Maker, (number, given): &Row) -> Found {
    let objects: Vec<_> = given
        .iter()
        .filter_map(|given| match given {
            Given::Pointer(object) => Some(object),
            Given::Number(_) => None,
        })
        .collect();
    let (whole, places) = Memory::new(&objects);
    let make = |maker: &mut Maker, memory: &Memory| {
        maker.make(*number, arguments(given, memory, &places), memory)
    };
    let extents = told(*number, arguments(given, &whole, &places), &whole);
    // Exactly what the table says is there.
    let exact = extents.iter().enumerate().fold(whole, |memory, (at, &extent)| {
        let room = memory.room(at);
        memory.cut(at, extent.max(room))
    });
    let answer = make(maker, &exact);
    if faulted(answer) {
        return Found::Wrong(format!("it reads more than {extents:?}"));
    }
    for (object, &extent) in extents.iter().enumerate().filter(|(_, extent)| **extent > 0) {
        let less = make(maker, &exact.cut(object, extent - exact.unit(object)));
        if !faulted(less) && !(0..answer).contains(&less) {
            return match answer < 0 && less == answer {
                true => Found::Refused(answer),
                false => {
                    Found::Wrong(format!("it reads less than {extent} bytes of object {object}"))
                }
            };
        }
    }
    Found::Right
}

#[test]
fn the_kernel_reads_what_the_table_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut maker = Maker::start(folder.path());
    let ids: Vec<i64> = maker.line().split(' ').map(|id| id.parse().expect("a number")).collect();
    let rows = rows::rows(ids[0], ids[1], ids[2] as u16);
    let (mut right, mut refused, mut wrong) = (0, Vec::new(), Vec::new());
    for row in &rows {
        let name = syscalls::name(row.0).expect("a call");
        match judge(&mut maker, row) {
            Found::Right => right += 1,
            Found::Refused(answer) => refused.push(format!("{name} ({answer})")),
            Found::Wrong(why) => wrong.push(format!("{name}: {why}, {:?}", row.1)),
        }
    }
    maker.end();
    println!("{right} of {} calls decided; refused: {}", rows.len(), refused.join(", "));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Some need rights, or kernels, that a machine may lack.
    assert!(right * 10 >= rows.len() * 7, "only {right} of {}: {refused:?}", rows.len());
}
