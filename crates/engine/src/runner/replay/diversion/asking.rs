//! Calls that only ask: answered plausibly and always alike, where the recording has no answer.

use crate::runner::context::Context;
use crate::runner::guest::{self, Checked};
use crate::runner::signal::frame::GuestMemory;
use crate::sys::syscall;

/// The answer to a call that asks for something that can be made up; nothing if it is another call.
pub fn answer(context: &mut Context, number: u64, a: [u64; 6]) -> Option<i64> {
    let answer = match number as i64 {
        libc::SYS_getpid | libc::SYS_getpgrp => i64::from(process(context)),
        libc::SYS_gettid => i64::from(context.replayer().contexts.number()),
        libc::SYS_getppid => 1,
        libc::SYS_getuid | libc::SYS_geteuid | libc::SYS_getgid | libc::SYS_getegid => user(number),
        libc::SYS_clock_gettime => give_time(context, a[1], 1),
        libc::SYS_clock_getres => give(context, a[1], &[0, 1]),
        libc::SYS_gettimeofday => give_time(context, a[0], 1000),
        libc::SYS_time => {
            let seconds = context.replayer().diversion().now / 1_000_000_000;
            give(context, a[0], &[seconds]).min(0) + seconds as i64
        }
        libc::SYS_getrandom => random(context, a[0], a[1]),
        libc::SYS_uname => name(context, a[0]),
        libc::SYS_sched_getaffinity => match give(context, a[2], &[1]) {
            0 => 8,
            error => error,
        },
        libc::SYS_getcpu => 0,
        libc::SYS_getrlimit => limits(context, a[0], a[1]),
        libc::SYS_prlimit64 if a[2] == 0 => limits(context, a[1], a[3]),
        libc::SYS_times => give(context, a[0], &[0; 4]),
        libc::SYS_getrusage => give(context, a[1], &[0; 18]),
        libc::SYS_fstat if a[0] <= 2 => pipe_status(context, a[1]),
        libc::SYS_newfstatat
            if a[0] <= 2 && guest::read_string(a[1]).is_ok_and(|name| name.is_empty()) =>
        {
            pipe_status(context, a[2])
        }
        libc::SYS_ioctl if matches!(a[1], libc::TCGETS | libc::TIOCGWINSZ) => {
            -i64::from(libc::ENOTTY)
        }
        libc::SYS_lseek => -i64::from(libc::ESPIPE),
        libc::SYS_fcntl if a[1] as i32 == libc::F_GETFL => i64::from(libc::O_RDWR),
        libc::SYS_fcntl if a[1] as i32 == libc::F_GETFD => 0,
        // Of the process alone, and without a consequence here.
        libc::SYS_close
        | libc::SYS_mlock
        | libc::SYS_munlock
        | libc::SYS_membarrier
        | libc::SYS_sched_setaffinity => 0,
        libc::SYS_prctl if a[0] as i32 != libc::PR_SET_SECCOMP => 0,
        _ => return None,
    };
    Some(answer)
}

/// The number that the process has to itself.
pub fn process(context: &mut Context) -> i32 {
    let number = context.replayer().process;
    let mut all = context.replayer().recording.processes().iter();
    all.find(|start| start.process == number).map_or(1, |it| it.number.unwrap_or(it.pid))
}

/// Who runs us, which is who looks at the recording.
fn user(number: u64) -> i64 {
    // SAFETY: these calls take nothing, and only tell a number.
    unsafe { syscall!(number as i64) }
}

/// The clock goes on a little each time that it is asked.
fn give_time(context: &mut Context, address: u64, unit: u64) -> i64 {
    const STEP: u64 = 1000;
    let diversion = context.replayer().diversion();
    diversion.now += STEP;
    let now = diversion.now;
    give(context, address, &[now / 1_000_000_000, now % 1_000_000_000 / unit])
}

fn random(context: &mut Context, address: u64, length: u64) -> i64 {
    const MOST: u64 = 1 << 20;
    let length = length.min(MOST);
    let mut bytes = vec![0; length as usize];
    for byte in &mut bytes {
        let state = &mut context.replayer().diversion().random;
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *byte = (*state >> 56) as u8;
    }
    if write(context, address, &bytes) { length as i64 } else { -i64::from(libc::EFAULT) }
}

fn name(context: &mut Context, address: u64) -> i64 {
    const LENGTH: usize = 390;
    let mut bytes = [0u8; LENGTH];
    // SAFETY: the kernel writes one `utsname`.
    unsafe { syscall!(libc::SYS_uname, bytes.as_mut_ptr()) };
    if write(context, address, &bytes) { 0 } else { -i64::from(libc::EFAULT) }
}

fn limits(context: &mut Context, resource: u64, address: u64) -> i64 {
    const STACK: u64 = 8 << 20;
    let most = if resource == u64::from(libc::RLIMIT_STACK) { STACK } else { u64::MAX };
    give(context, address, &[most, u64::MAX])
}

/// `stat` of a pipe, which standard input, output and error then are.
fn pipe_status(context: &mut Context, address: u64) -> i64 {
    const LINKS_AND_MODE: (usize, usize) = (2, 3);
    const BLOCK_SIZE: usize = 7;
    let mut words = [0u64; 18];
    words[LINKS_AND_MODE.0] = 1;
    words[LINKS_AND_MODE.1] = u64::from(libc::S_IFIFO | 0o600);
    words[BLOCK_SIZE] = 4096;
    give(context, address, &words)
}

/// Writes words where the guest wants them; nowhere if it does not.
fn give(context: &mut Context, address: u64, words: &[u64]) -> i64 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let given = address == 0 || write(context, address, &bytes);
    if given { 0 } else { -i64::from(libc::EFAULT) }
}

/// Writes to the guest's memory. Whether it is there.
pub fn write(context: &mut Context, address: u64, bytes: &[u8]) -> bool {
    Checked.write(address, bytes) || context.engine().unguard_all() && Checked.write(address, bytes)
}
