//! Filters that the guest puts on its own system calls.
//!
//! The kernel must not apply them: it would judge the engine's calls too. So they are kept and
//! interpreted here, on the guest's calls alone. Filters that hand calls to another process
//! (`SECCOMP_FILTER_FLAG_NEW_LISTENER`) or to a tracer are refused.

use super::Outcome;
use crate::config::{Filter, FilterStep};
use crate::runner::context::Context;
use crate::runner::engine::Engine;
use crate::runner::guest::{self, Checked};
use crate::runner::procfs;
use crate::runner::signal::frame::GuestMemory;
use crate::runner::signal::{SignalInfo, deliver};
use crate::runner::thread::Thread;
use crate::sys::syscall;

const ARCHITECTURE: u32 = 0xc000_003e;
const DATA_BYTES: u32 = 64;
const CELLS: u32 = 16;
const LONGEST: u16 = 4096;

const MODE_STRICT: u64 = 1;
const MODE_FILTER: u64 = 2;
const SET_MODE_STRICT: u64 = 0;
const SET_MODE_FILTER: u64 = 1;
const GET_ACTION_AVAILABLE: u64 = 2;
const ALL_THREADS: u64 = 1;
/// To all threads, log, allow speculation, and two that go with listeners.
const KNOWN_FLAGS: u64 = 0b11_0111;

const KILL_PROCESS: u32 = 0x8000_0000;
const KILL_THREAD: u32 = 0;
const TRAP: u32 = 0x3_0000;
const ERRNO: u32 = 0x5_0000;
const LOG: u32 = 0x7ffc_0000;
const ALLOW: u32 = 0x7fff_0000;

/// `seccomp`.
pub fn seccomp(engine: &mut Engine, thread: &mut Thread, a: [u64; 6]) -> Outcome {
    match (a[0], a[1]) {
        (SET_MODE_STRICT, 0) if a[2] == 0 => install(engine, thread, strict(), false),
        (SET_MODE_FILTER, flags) if flags & !KNOWN_FLAGS == 0 => match read(a[2]) {
            Ok(filter) => install(engine, thread, filter, flags & ALL_THREADS != 0),
            Err(error) => Outcome::error(error),
        },
        (GET_ACTION_AVAILABLE, 0) => match guest::read_u32(a[2]) {
            Some(KILL_PROCESS | KILL_THREAD | TRAP | ERRNO | LOG | ALLOW) => Outcome::Answer(0),
            Some(_) => Outcome::error(libc::EOPNOTSUPP),
            None => Outcome::error(libc::EFAULT),
        },
        _ => Outcome::error(libc::EINVAL),
    }
}

/// `prctl(PR_SET_SECCOMP)`.
pub fn set(engine: &mut Engine, thread: &mut Thread, a: [u64; 6]) -> Outcome {
    match a[1] {
        MODE_STRICT => install(engine, thread, strict(), false),
        MODE_FILTER => seccomp(engine, thread, [SET_MODE_FILTER, 0, a[2], 0, 0, 0]),
        _ => Outcome::error(libc::EINVAL),
    }
}

/// `prctl(PR_GET_SECCOMP)`. In strict mode the call itself would be deadly.
pub fn get(engine: &Engine, thread: &Thread) -> Outcome {
    let filtered = !thread.kernel.filters.is_empty() || !engine.config.filters.is_empty();
    Outcome::Answer(if filtered { MODE_FILTER as i64 } else { 0 })
}

fn install(engine: &mut Engine, thread: &mut Thread, filter: Filter, everywhere: bool) -> Outcome {
    if !may_filter() {
        return Outcome::error(libc::EACCES);
    }
    thread.kernel.filters.push(filter);
    // A process with one thread hands its filters on to the next program by the configuration.
    if everywhere || engine.threads.list.is_empty() {
        engine.config.filters.append(&mut thread.kernel.filters);
    }
    Outcome::Answer(0)
}

/// Only who cannot gain privileges, or has them, may.
fn may_filter() -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    // SAFETY: asks only.
    if unsafe { syscall!(libc::SYS_prctl, libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) } == 1 {
        return true;
    }
    let status = procfs::text("status");
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    capabilities.is_some_and(|all| all & 1 << CAP_SYS_ADMIN != 0)
}

/// Reads a `struct sock_fprog` of the guest's.
fn read(address: u64) -> Result<Filter, i32> {
    let mut header = [0; 16];
    if !Checked.read(address, &mut header) {
        return Err(libc::EFAULT);
    }
    let count = u16::from_le_bytes([header[0], header[1]]);
    if count == 0 || count > LONGEST {
        return Err(libc::EINVAL);
    }
    let place = u64::from_le_bytes(header[8..16].try_into().expect("eight bytes"));
    let mut bytes = vec![0; 8 * usize::from(count)];
    if !Checked.read(place, &mut bytes) {
        return Err(libc::EFAULT);
    }
    let filter: Filter = bytes
        .chunks_exact(8)
        .map(|step| FilterStep {
            code: u16::from_le_bytes([step[0], step[1]]),
            jump_true: step[2],
            jump_false: step[3],
            value: u32::from_le_bytes([step[4], step[5], step[6], step[7]]),
        })
        .collect();
    if is_valid(&filter) { Ok(filter) } else { Err(libc::EINVAL) }
}

/// What strict mode allows, as a filter: reading, writing, returning from handlers, ending.
fn strict() -> Filter {
    let step = |code, jump_true, value| FilterStep { code, jump_true, jump_false: 0, value };
    let allowed = [libc::SYS_read, libc::SYS_write, libc::SYS_rt_sigreturn, libc::SYS_exit];
    let tests = allowed.iter().zip((1..=4u8).rev());
    let mut filter = vec![step(LD_ABS, 0, 0)];
    filter.extend(tests.map(|(call, distance)| step(JEQ_K, distance, *call as u32)));
    filter.extend([step(RET_K, 0, KILL_PROCESS | STRICT), step(RET_K, 0, ALLOW)]);
    filter
}

/// Marks a kill by strict mode, which is by SIGKILL.
const STRICT: u32 = 1;

const LD_ABS: u16 = 0x20;
const LD_LEN: u16 = 0x80;
const LDX_LEN: u16 = 0x81;
const LD_IMM: u16 = 0x00;
const LDX_IMM: u16 = 0x01;
const LD_MEM: u16 = 0x60;
const LDX_MEM: u16 = 0x61;
const ST: u16 = 0x02;
const STX: u16 = 0x03;
const RET_K: u16 = 0x06;
const RET_A: u16 = 0x16;
const TAX: u16 = 0x07;
const TXA: u16 = 0x87;
const NEG: u16 = 0x84;
const JUMP: u16 = 0x05;
const JEQ_K: u16 = 0x15;
const FROM_X: u16 = 0x08;

fn is_arithmetic(code: u16) -> bool {
    matches!(code & !FROM_X, 0x04 | 0x14 | 0x24 | 0x34 | 0x44 | 0x54 | 0x64 | 0x74 | 0xa4)
}

fn is_conditional(code: u16) -> bool {
    matches!(code & !FROM_X, 0x15 | 0x25 | 0x35 | 0x45)
}

fn is_valid(filter: &[FilterStep]) -> bool {
    let ends = filter.last().is_some_and(|step| matches!(step.code, RET_K | RET_A));
    ends && filter.iter().enumerate().all(|(at, step)| {
        let inside = |distance: u64| at as u64 + 1 + distance < filter.len() as u64;
        match step.code {
            LD_ABS => step.value < DATA_BYTES && step.value % 4 == 0,
            LD_MEM | LDX_MEM | ST | STX => step.value < CELLS,
            LD_LEN | LDX_LEN | LD_IMM | LDX_IMM | RET_K | RET_A | TAX | TXA | NEG => true,
            JUMP => inside(u64::from(step.value)),
            0x34 => step.value != 0,
            0x64 | 0x74 => step.value < 32,
            code if is_conditional(code) => {
                inside(u64::from(step.jump_true)) && inside(u64::from(step.jump_false))
            }
            code => is_arithmetic(code),
        }
    })
}

/// What a filter says to a call, given as the kernel's `struct seccomp_data` in words.
fn judge(filter: &[FilterStep], data: &[u32; 16]) -> u32 {
    let (mut a, mut x) = (0u32, 0u32);
    let mut cells = [0u32; CELLS as usize];
    let mut at = 0;
    while let Some(step) = filter.get(at) {
        at += 1;
        let (code, value) = (step.code, step.value);
        let operand = if code & FROM_X != 0 { x } else { value };
        match code {
            LD_ABS => a = data[value as usize / 4],
            LD_LEN => a = DATA_BYTES,
            LDX_LEN => x = DATA_BYTES,
            LD_IMM => a = value,
            LDX_IMM => x = value,
            LD_MEM => a = cells[value as usize],
            LDX_MEM => x = cells[value as usize],
            ST => cells[value as usize] = a,
            STX => cells[value as usize] = x,
            RET_K => return value,
            RET_A => return a,
            TAX => x = a,
            TXA => a = x,
            NEG => a = a.wrapping_neg(),
            JUMP => at += value as usize,
            _ if is_conditional(code) => {
                let holds = match code & 0xf0 {
                    0x10 => a == operand,
                    0x20 => a > operand,
                    0x30 => a >= operand,
                    _ => a & operand != 0,
                };
                at += usize::from(if holds { step.jump_true } else { step.jump_false });
            }
            _ => match arithmetic(code, a, operand) {
                Some(result) => a = result,
                None => return KILL_THREAD,
            },
        }
    }
    KILL_THREAD
}

fn arithmetic(code: u16, a: u32, operand: u32) -> Option<u32> {
    Some(match code & 0xf0 {
        0x00 => a.wrapping_add(operand),
        0x10 => a.wrapping_sub(operand),
        0x20 => a.wrapping_mul(operand),
        0x30 => a.checked_div(operand)?,
        0x40 => a | operand,
        0x50 => a & operand,
        0x60 => a.wrapping_shl(operand),
        0x70 => a.wrapping_shr(operand),
        _ => a ^ operand,
    })
}

/// The strictest verdict, and of equals that of the newest filter.
fn verdict<'a>(filters: impl Iterator<Item = &'a Filter>, data: &[u32; 16]) -> u32 {
    let action = |verdict: u32| (verdict & 0xffff_0000) as i32;
    let verdicts = filters.map(|filter| judge(filter, data));
    verdicts.fold(
        ALLOW,
        |strictest, verdict| {
            if action(verdict) <= action(strictest) { verdict } else { strictest }
        },
    )
}

/// Asks the guest's filters about a call; nothing if they let it pass.
pub fn ask(context: &mut Context, number: u64, a: [u64; 6]) -> Option<Outcome> {
    let (engine, thread) = context.parts();
    if engine.config.filters.is_empty() && thread.kernel.filters.is_empty() {
        return None;
    }
    let next = engine.cpu.registers.pc;
    let mut data = [0; 16];
    data[0] = number as u32;
    data[1] = ARCHITECTURE;
    for (index, value) in [next].into_iter().chain(a).enumerate() {
        data[2 + 2 * index] = value as u32;
        data[3 + 2 * index] = (value >> 32) as u32;
    }
    let verdict = verdict(engine.config.filters.iter().chain(&thread.kernel.filters), &data);
    match (verdict & 0xffff_0000, verdict & 0xffff) {
        (ALLOW | LOG, _) => None,
        (ERRNO, error) => Some(Outcome::Answer(-i64::from(error.min(4095)))),
        (TRAP, reason) => {
            let info = trap(next, number as u32, reason);
            deliver::fault(context, info);
            Some(Outcome::Resumed)
        }
        (KILL_PROCESS, STRICT) => {
            deliver::die_of(context, &SignalInfo::fault(libc::SIGKILL, 0, 0, (0, 0)))
        }
        (KILL_PROCESS | KILL_THREAD, reason) => {
            deliver::die_of(context, &trap(next, number as u32, reason))
        }
        _ => Some(Outcome::error(libc::ENOSYS)), // a tracer or listener that does not exist
    }
}

fn trap(next: u64, number: u32, reason: u32) -> SignalInfo {
    const SYS_SECCOMP: i32 = 1;
    let mut info = SignalInfo::fault(libc::SIGSYS, SYS_SECCOMP, next, (0, 0));
    info.raw[4..8].copy_from_slice(&reason.to_le_bytes());
    info.raw[24..28].copy_from_slice(&number.to_le_bytes());
    info.raw[28..32].copy_from_slice(&ARCHITECTURE.to_le_bytes());
    info.cr2 = 0;
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: u32) -> [u32; 16] {
        let mut data = [0; 16];
        data[0] = number;
        data
    }

    #[test]
    fn strict_mode_allows_four_calls() {
        let filter = strict();
        assert!(is_valid(&filter));
        let allowed = (0..400).filter(|number| judge(&filter, &call(*number)) == ALLOW);
        assert_eq!(allowed.collect::<Vec<_>>(), [0, 1, 15, 60]);
    }

    #[test]
    fn the_strictest_filter_decides() {
        let say = |value| vec![FilterStep { code: RET_K, jump_true: 0, jump_false: 0, value }];
        let filters = [say(ALLOW), say(ERRNO | 5), say(ERRNO | 7), say(LOG)];
        assert_eq!(verdict(filters.iter(), &call(0)), ERRNO | 7);
        assert_eq!(verdict([say(KILL_PROCESS), say(KILL_THREAD)].iter(), &call(0)), KILL_PROCESS);
    }

    #[test]
    fn jumps_out_of_the_filter_are_refused() {
        let ret = FilterStep { code: RET_K, jump_true: 0, jump_false: 0, value: ALLOW };
        let jump = FilterStep { code: JEQ_K, jump_true: 1, jump_false: 0, value: 0 };
        assert!(!is_valid(&[jump, ret]));
        assert!(is_valid(&[jump, ret, ret]));
        assert!(!is_valid(&[ret, jump]));
        assert!(!is_valid(&[]));
    }
}
