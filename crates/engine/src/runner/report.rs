//! What the runner tells the host and the user: a guest's fatal fault, and faults of our own.
//!
//! The runner's words go to the descriptor that the host gave it, one JSON object a line, or to
//! standard error where no host listens. Nothing here allocates once the runner is in trouble.

use super::cpu::{Registers, cpu};
use super::signal::SignalInfo;
use super::sys;
use crate::report::{CrashReport, Message, ModuleMap};
use std::sync::atomic::{AtomicI32, Ordering};

static CHANNEL: AtomicI32 = AtomicI32::new(2);

/// Sends messages to this descriptor from now on.
pub fn set_channel(descriptor: i32) {
    CHANNEL.store(descriptor, Ordering::Relaxed);
}

/// Sends a message to the host.
pub fn send(message: &Message) {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    sys::write_all(CHANNEL.load(Ordering::Relaxed), &line);
}

/// Tells of a guest that a signal ends.
pub fn crash(info: &SignalInfo, registers: &Registers, memory: &super::memory::Memory) {
    let modules = memory
        .iter()
        .filter_map(|(range, mapping)| {
            let file = mapping.file.as_ref()?;
            Some(ModuleMap {
                start: range.start,
                end: range.end,
                offset: mapping.offset,
                path: file.to_string(),
            })
        })
        .collect();
    let stack = read_stack(registers.general[4]);
    send(&Message::Crash(Box::new(CrashReport {
        process: sys::getpid(),
        thread: sys::gettid(),
        signal: info.number(),
        code: info.code(),
        address: info.address(),
        pc: registers.pc,
        flags: registers.flags,
        general: registers.general,
        fs: registers.fs,
        modules,
        stack,
    })));
}

/// What lies above the stack pointer, as far as it can be read.
fn read_stack(pointer: u64) -> Vec<u8> {
    let mut bytes = vec![0; 64 << 10];
    let got = super::guest::read_some(pointer, &mut bytes);
    bytes.truncate(got);
    bytes
}

/// Tells of something the engine cannot run, and ends with exit code 70.
pub fn refuse(what: &str, pc: u64) -> ! {
    send(&Message::Fault { what: what.to_owned(), pc });
    sys::exit_group(70)
}

/// Makes panics faults of our own.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        let what = format!("panic: {panic}");
        send(&Message::Fault { what, pc: cpu().registers.pc });
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
    line.number(cpu().registers.pc);
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
