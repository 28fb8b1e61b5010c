//! What system calls write into the program's memory, as far as their arguments and answers
//! tell, and their names. A system call is where a slice ends: an input.

/// Registers that the kernel sets when it calls a signal handler: the three arguments, and rax. By
/// the processor's number.
pub const HANDLER_REGISTERS: [u8; 4] = [0, 2, 6, 7];

/// The ranges that a system call wrote.
#[must_use]
pub fn written(number: u64, arguments: &[u64; 6], answer: i64) -> Vec<(u64, u64)> {
    let Ok(count) = u64::try_from(answer) else { return Vec::new() };
    let [a, b, c, ..] = *arguments;
    let ranges = match number {
        READ | PREAD | RECVFROM | GETDENTS | READLINK => vec![(b, count)],
        READLINKAT => vec![(c, count)],
        GETRANDOM | GETCWD => vec![(a, count)],
        STAT | FSTAT | LSTAT => vec![(b, 144)],
        NEWFSTATAT => vec![(c, 144)],
        MMAP => mapped(number, arguments, answer).into_iter().collect(),
        PIPE | PIPE2 => vec![(a, 8)],
        UNAME => vec![(a, 390)],
        CLOCK_GETTIME | GETTIMEOFDAY | CLOCK_GETRES | GETRLIMIT => {
            vec![(if number == GETTIMEOFDAY { a } else { b }, 16)]
        }
        RT_SIGACTION => vec![(c, 32)],
        PRLIMIT => vec![(arguments[3], 16)],
        POLL => vec![(a, b.saturating_mul(8))],
        TIME => vec![(a, 8)],
        SYSINFO => vec![(a, 112)],
        _ => Vec::new(),
    };
    ranges.into_iter().filter(|(address, bytes)| *address != 0 && *bytes > 0).collect()
}

/// What a mapping made new: old pages of a fixed one are gone, and new ones hold what the file does,
/// or zeros.
#[must_use]
pub fn mapped(number: u64, arguments: &[u64; 6], answer: i64) -> Option<(u64, u64)> {
    let start = u64::try_from(answer).ok()?;
    (number == MMAP && arguments[1] > 0).then_some((start, arguments[1]))
}

const READ: u64 = 0;
const STAT: u64 = 4;
const FSTAT: u64 = 5;
const LSTAT: u64 = 6;
const POLL: u64 = 7;
const MMAP: u64 = 9;
const RT_SIGACTION: u64 = 13;
const PREAD: u64 = 17;
const PIPE: u64 = 22;
const RECVFROM: u64 = 45;
const UNAME: u64 = 63;
const GETCWD: u64 = 79;
const READLINK: u64 = 89;
const GETTIMEOFDAY: u64 = 96;
const GETRLIMIT: u64 = 97;
const SYSINFO: u64 = 99;
const TIME: u64 = 201;
const GETDENTS: u64 = 217;
const CLOCK_GETTIME: u64 = 228;
const CLOCK_GETRES: u64 = 229;
const NEWFSTATAT: u64 = 262;
const READLINKAT: u64 = 267;
const PIPE2: u64 = 293;
const PRLIMIT: u64 = 302;
const GETRANDOM: u64 = 318;

/// The name of a system call, or its number.
#[must_use]
pub fn name(number: u64) -> String {
    let known = [
        (0, "read"),
        (1, "write"),
        (2, "open"),
        (3, "close"),
        (4, "stat"),
        (5, "fstat"),
        (6, "lstat"),
        (7, "poll"),
        (8, "lseek"),
        (9, "mmap"),
        (10, "mprotect"),
        (11, "munmap"),
        (12, "brk"),
        (13, "rt_sigaction"),
        (14, "rt_sigprocmask"),
        (16, "ioctl"),
        (17, "pread64"),
        (39, "getpid"),
        (45, "recvfrom"),
        (56, "clone"),
        (60, "exit"),
        (63, "uname"),
        (79, "getcwd"),
        (89, "readlink"),
        (96, "gettimeofday"),
        (186, "gettid"),
        (201, "time"),
        (202, "futex"),
        (217, "getdents64"),
        (228, "clock_gettime"),
        (231, "exit_group"),
        (234, "tgkill"),
        (257, "openat"),
        (262, "newfstatat"),
        (302, "prlimit64"),
        (318, "getrandom"),
        (334, "rseq"),
        (435, "clone3"),
    ];
    let found = known.iter().find(|(known, _)| *known == number);
    found.map_or_else(|| format!("system call {number}"), |(_, name)| (*name).into())
}
