//! The model follows streams that are made here, event by event.

use super::*;
use events::shape::KIND_PLAIN;

const MALLOC: u64 = 0x1000;
const FREE: u64 = 0x2000;
const REALLOC: u64 = 0x3000;

fn process() -> Process {
    let mut process = Process::new(Allocators::default());
    for (address, name) in [(MALLOC, "malloc"), (FREE, "free"), (REALLOC, "realloc")] {
        process.add_function(address, name);
    }
    process.event(&Event::Thread(4711));
    process
}

fn instruction(process: &mut Process, pc: u64, kind: u8) {
    process.event(&Event::Instruction { pc, kind, taken: false });
}

fn access(process: &mut Process, address: u64, write: bool) {
    process.event(&Event::Access { address, size: 8, write });
}

fn call(process: &mut Process, pc: u64, slot: u64) {
    instruction(process, pc, KIND_CALL);
    // Through memory: where to go is read first.
    access(process, 0x9999, false);
    access(process, slot, true);
}

fn ret(process: &mut Process, slot: u64) {
    instruction(process, 1, KIND_RETURN);
    access(process, slot, false);
}

/// A call of a function that returns at once.
fn function(process: &mut Process, function: u64, [a, b]: [u64; 2], value: u64) {
    let (stack, arguments) = (0x7000, [a, b, 0, 0, 0, 0]);
    process.event(&Event::Enter { function, back: 0x401, stack, arguments });
    process.event(&Event::Return { function, stack, value });
}

fn callers(process: &Process) -> Vec<u64> {
    process.threads.now().callers().collect()
}

#[test]
fn every_thread_has_its_calls() {
    let mut process = process();
    call(&mut process, 10, 0x8000);
    call(&mut process, 11, 0x7f00);
    process.event(&Event::Thread(4712));
    call(&mut process, 20, 0x6_0000_8000);
    assert_eq!(callers(&process), [20]);
    process.event(&Event::Thread(4711));
    ret(&mut process, 0x7f00);
    assert_eq!(callers(&process), [10]);
    let first = process.thread(1).expect("the first");
    assert_eq!((first.kernel_id, first.started), (Some(4711), 0));
    assert_eq!(process.thread(2).map(|thread| thread.started), Some(2));
    let frame = first.state.calls.top().expect("a frame");
    assert_eq!((frame.slot, frame.data), (0x8000, Call { pc: 10, time: 1 }));
}

#[test]
fn a_handler_is_a_frame_until_it_returns() {
    let mut process = process();
    call(&mut process, 10, 0x8000);
    process.event(&Event::Handler { pc: 15, stack: 0x7ff0, frame: 0x7800 });
    call(&mut process, 16, 0x7700);
    assert_eq!(callers(&process), [16, 15, 10]);
    let (number, arguments) = (n::rt_sigreturn, [0; 6]);
    process.event(&Event::Syscall { number, arguments, answer: 0 });
    assert_eq!(callers(&process), [10]);
}

#[test]
fn a_thread_that_exits_has_ended() {
    let mut process = process();
    instruction(&mut process, 1, KIND_PLAIN);
    process.event(&Event::Syscall { number: n::exit, arguments: [0; 6], answer: 0 });
    process.event(&Event::Thread(4711));
    let ended: Vec<_> = process.threads.all().map(|thread| thread.ended).collect();
    assert_eq!(ended, [None, Some(1), None]);
    assert_eq!(process.threads.running().number, 2);
}

#[test]
fn blocks_know_where_they_came_and_went() {
    let mut process = process();
    call(&mut process, 10, 0x8000);
    function(&mut process, MALLOC, [24, 0], 0x5000);
    ret(&mut process, 0x8000);
    call(&mut process, 11, 0x8000);
    let block = process.blocks.containing(0x5017).expect("its last byte");
    function(&mut process, FREE, [0x5000, 0], 0);
    let known = process.blocks.get(block).expect("it was there");
    let release = known.release.expect("it is freed");
    assert_eq!(process.stack(known.stack), [10]);
    assert_eq!(process.stack(release.stack), [11]);
    assert_eq!((known.facts.time, release.time), (1, 3));
    assert_eq!(process.blocks.live().count(), 0);
}

#[test]
fn a_block_that_is_moved_is_another_one() {
    let mut process = process();
    function(&mut process, MALLOC, [24, 0], 0x5000);
    function(&mut process, REALLOC, [0x5000, 48], 0x5000);
    let first = process.blocks.beginning_at(0x5000).expect("in place");
    assert_eq!(process.blocks.get(first).map(|block| block.facts.size), Some(48));
    function(&mut process, REALLOC, [0x5000, 400], 0x6000);
    let second = process.blocks.beginning_at(0x6000).expect("moved");
    assert_ne!(first, second);
    assert!(process.blocks.get(first).is_some_and(|block| !block.is_live()));
    // Allocators that call themselves: only the outermost call counts.
    let enter = |function, stack, size| Event::Enter {
        function,
        back: 0x401,
        stack,
        arguments: [0, size, 0, 0, 0, 0],
    };
    let inner = Event::Enter { function: MALLOC, back: 0x77, stack: 0x6f00, arguments: [8; 6] };
    process.event(&enter(REALLOC, 0x7000, 8));
    process.event(&inner);
    process.event(&Event::Return { function: MALLOC, stack: 0x6f00, value: 0x8000 });
    assert_eq!(process.blocks.beginning_at(0x8000), None);
    process.event(&Event::Return { function: REALLOC, stack: 0x7000, value: 0x8000 });
    assert!(process.blocks.beginning_at(0x8000).is_some());
}

#[test]
fn the_child_of_a_fork_has_the_heap_and_one_thread() {
    let mut process = process();
    function(&mut process, MALLOC, [24, 0], 0x5000);
    process.event(&Event::Thread(4712));
    call(&mut process, 20, 0x8000);
    process.event(&Event::Fork(None));
    process.event(&Event::Thread(5000));
    assert_eq!(callers(&process), [20]);
    assert_eq!(process.threads.all().count(), 1);
    assert!(process.blocks.containing(0x5000).is_some());
}
