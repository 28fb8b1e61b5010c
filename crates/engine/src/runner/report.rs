//! What the runner tells the host and the user: a guest's fatal fault, and faults of our own.
//!
//! The runner's words go to the descriptor that the host gave it, one JSON object a line, or to
//! standard error where no host listens. Nothing here allocates once the runner is in trouble.

use super::cpu::{self, Registers};
use super::engine::Engine;
use super::memory::{Mapping, Memory};
use super::signal::SignalInfo;
use super::signal::frame::on_signal_stack;
use super::thread::Thread;
use crate::layout;
use crate::report::{Chunk, CrashReport, Message, ModuleMap, Region};
use crate::sys::{self, syscall};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicI32, Ordering};

static CHANNEL: AtomicI32 = AtomicI32::new(2);

/// Sends messages to this descriptor from now on.
pub fn set_channel(descriptor: i32) {
    CHANNEL.store(descriptor, Ordering::Relaxed);
}

/// What the parts of a message are marked with; the caller's number if there is none. Only one
/// thread of a process sends at a time, but in namespaces others can have the same number.
static SENDER: AtomicI32 = AtomicI32::new(0);

/// Marks messages with this process's number to the host.
pub fn set_sender(process: i32) {
    SENDER.store(process, Ordering::Relaxed);
}

/// Sends a message to the host.
pub fn send(message: &Message) {
    let sender = match SENDER.load(Ordering::Relaxed) {
        0 => sys::gettid(),
        process => process,
    };
    for line in crate::report::lines(message, sender) {
        sys::write_all(CHANNEL.load(Ordering::Relaxed), &line);
    }
}

/// Which files are in the guest's memory, and where.
pub fn modules(memory: &Memory) -> Vec<ModuleMap> {
    let module = |(range, mapping): (std::ops::Range<u64>, &super::memory::Mapping)| {
        let path = mapping.file.as_ref()?.to_string();
        Some(ModuleMap { start: range.start, end: range.end, offset: mapping.offset, path })
    };
    memory.iter().filter_map(module).collect()
}

/// Tells of a guest that a signal ends.
pub fn crash(info: &SignalInfo, registers: &Registers, thread: &Thread, engine: &Engine) {
    let memory = &engine.process.memory;
    let modules = modules(memory);
    let stack = registers.general[4];
    let above = || memory.iter().find(|(range, _)| range.start > stack);
    send(&Message::Crash(Box::new(CrashReport {
        process: engine.process.numbers.host,
        parent: sys::getppid(),
        thread: sys::gettid(),
        name: thread_name(),
        program: engine.process.executable.to_string_lossy().into_owned(),
        signal: info.number(),
        code: info.code(),
        address: info.address(),
        sender: info.sender(),
        trap: info.trap.0,
        error: info.trap.1,
        pc: registers.pc,
        flags: registers.flags,
        general: registers.general,
        fs: registers.fs,
        modules,
        at_address: memory.find(info.address()).map(region),
        at_stack: memory.find(stack).or_else(above).map(region),
        memory: chunks(registers, on_signal_stack(thread, stack).then_some(memory)),
    })));
}

fn region((range, mapping): (Range<u64>, &Mapping)) -> Region {
    Region {
        start: range.start,
        end: range.end,
        protection: mapping.protection,
        file: mapping.file.as_ref().map(|file| file.to_string()),
    }
}

fn thread_name() -> String {
    let mut name = [0u8; 16];
    // SAFETY: the kernel writes at most sixteen bytes.
    unsafe { syscall!(libc::SYS_prctl, libc::PR_GET_NAME, name.as_mut_ptr()) };
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// How much of the stack is kept.
const STACK: usize = 64 << 10;
/// How much of that is searched for pointers to more.
const INNER: usize = 2 << 10;
/// How much is kept of what a pointer leads to.
const POINTED: usize = 128;
/// What a function may use below its stack pointer.
const RED_ZONE: u64 = 128;
/// How much is kept of another stack, and of how many that may be one.
const OTHER: usize = 16 << 10;
const MOST_OTHERS: usize = 8;
/// How far below its stack a stack pointer may be, when it ran over the end.
const OVERRUN: u64 = 1 << 20;

/// The memory that an explanation of a crash needs, as far as it can be read. On a signal stack,
/// what was interrupted has another one: `elsewhere` helps to find it.
fn chunks(registers: &Registers, elsewhere: Option<&Memory>) -> Vec<Chunk> {
    let stack = registers.general[4];
    let pages = (stack.saturating_add(1)..stack.saturating_add(OVERRUN)).step_by(4096);
    let red_zone = stack.saturating_sub(RED_ZONE);
    let above = pages.map(|address| (address | 0xfff).saturating_add(1));
    let starts = [red_zone, stack].into_iter().chain(above).chain([registers.general[5]]);
    let stack = starts.map(|start| chunk(start, STACK)).find(|chunk| !chunk.bytes.is_empty());
    let code = [chunk(registers.pc, 64), chunk(registers.pc.saturating_sub(64), 64)];
    let on_stack =
        stack.iter().flat_map(|stack| words(&stack.bytes[..INNER.min(stack.bytes.len())]));
    let pointers: BTreeSet<u64> = on_stack.chain(registers.general).collect();
    let pointed: Vec<Chunk> = pointers.into_iter().map(|to| chunk(to, POINTED)).collect();
    let others = stack.iter().zip(elsewhere).flat_map(|(stack, memory)| others(stack, memory));
    let others: Vec<Chunk> = others.collect();
    let all = stack.into_iter().chain(code).chain(others).chain(pointed);
    all.filter(|chunk| !chunk.bytes.is_empty()).collect()
}

/// The start of what a stack points to in every other writable mapping: one may be a stack too.
fn others(stack: &Chunk, memory: &Memory) -> Vec<Chunk> {
    let mut lowest: BTreeMap<u64, u64> = BTreeMap::new();
    for to in words(&stack.bytes) {
        let Some((range, mapping)) = memory.find(to) else { continue };
        let writable = mapping.protection & libc::PROT_WRITE != 0 && mapping.file.is_none();
        if writable && !range.contains(&stack.start) {
            let first = lowest.entry(range.start).or_insert(to);
            *first = to.min(*first);
        }
    }
    lowest.into_values().take(MOST_OTHERS).map(|to| chunk(to & !7, OTHER)).collect()
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
}

fn chunk(start: u64, length: usize) -> Chunk {
    let mut bytes = vec![0; length];
    // Nothing of a guest lies at the very top, and the addresses there must not wrap around.
    let inside = start < layout::USER_END;
    let got = if inside { super::guest::read_some(start, &mut bytes) } else { 0 };
    bytes.truncate(got);
    Chunk { start, bytes }
}

/// Tells of something the engine cannot run, and ends with exit code 70.
pub fn refuse(what: &str, pc: u64) -> ! {
    send(&Message::Fault { what: what.to_owned(), pc });
    sys::exit_group(70)
}

/// Tells that what is asked cannot be had of this program, and ends.
pub fn unfit(what: &str) -> ! {
    send(&Message::Unfit(what.to_owned()));
    sys::exit_group(crate::host::REFUSED)
}

/// Makes panics faults of our own.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        let what = format!("panic: {panic}");
        send(&Message::Fault { what, pc: cpu::last_pc() });
        sys::exit_group(70);
    }));
}

/// A fault in the engine's own code, seen by the signal handler: no allocation here.
pub fn fault_of_ours_in_handler(signal: i32, pc: u64, address: u64) -> ! {
    let mut line = Line { bytes: [0; 256], length: 0 };
    line.text(b"{\"Fault\":{\"what\":\"signal ");
    line.number(signal as u64);
    line.text(b" in the engine at ");
    line.hex(pc);
    line.text(b", address ");
    line.hex(address);
    line.text(b"\",\"pc\":");
    line.number(cpu::last_pc());
    line.text(b"}}\n");
    sys::write_all(CHANNEL.load(Ordering::Relaxed), &line.bytes[..line.length]);
    sys::exit_group(70)
}

struct Line {
    bytes: [u8; 256],
    length: usize,
}

impl Line {
    fn text(&mut self, text: &[u8]) {
        for byte in text {
            if self.length < self.bytes.len() {
                self.bytes[self.length] = *byte;
                self.length += 1;
            }
        }
    }

    fn digits(&mut self, mut value: u64, base: u64) {
        let mut digits = [0; 20];
        let mut count = 0;
        loop {
            digits[count] = b"0123456789abcdef"[(value % base) as usize];
            count += 1;
            value /= base;
            if value == 0 {
                break;
            }
        }
        for digit in digits[..count].iter().rev() {
            self.text(&[*digit]);
        }
    }

    fn number(&mut self, value: u64) {
        self.digits(value, 10);
    }

    fn hex(&mut self, value: u64) {
        self.text(b"0x");
        self.digits(value, 16);
    }
}
