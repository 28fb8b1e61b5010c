//! The three functions that old programs call at fixed addresses, where nothing can be translated.

use super::context::Context;
use super::{guest, record, replay};
use crate::sys;

const VSYSCALL_PAGE: u64 = 0xffff_ffff_ff60_0000;

/// Whether there is such a function at an address, or what would be one.
pub fn is_one(pc: u64) -> bool {
    pc & !0xc00 == VSYSCALL_PAGE
}

/// The guest has called one of them.
pub fn make(context: &mut Context) {
    let registers = &context.cpu().registers;
    let number = match registers.pc & 0xc00 {
        0 => libc::SYS_gettimeofday,
        0x400 => libc::SYS_time,
        _ => libc::SYS_getcpu,
    };
    let arguments = [registers.general[7], registers.general[6], 0, 0, 0, 0];
    call(context, number, arguments);
    let registers = &mut context.cpu().registers;
    if let Some(back) = guest::read_u64(registers.general[4]) {
        registers.pc = back;
        registers.general[4] += 8;
    }
}

fn call(context: &mut Context, number: i64, arguments: [u64; 6]) {
    let engine = context.engine();
    let registers = &engine.cpu.registers;
    let check = record::digest::call(registers, number as u64, arguments, &engine.process.memory);
    if engine.log.replayer.is_some() {
        return replay::system_call(context, number as u64, arguments, check);
    }
    let noted = record::before_call(engine, number as u64, arguments);
    // SAFETY: the guest's own call with its own pointers, which the kernel checks.
    let answer = unsafe { sys::call(number, arguments) };
    if let Some(noted) = noted {
        record::called(engine, noted, number as u64, arguments, answer);
    }
    engine.cpu.registers.general[0] = answer as u64;
}
