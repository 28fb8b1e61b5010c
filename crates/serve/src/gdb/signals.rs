//! Signals as clients number them: gdb has numbers of its own, LLDB those of the system.

use super::connection::Told;

/// gdb's number for what it does not know.
const UNKNOWN: u8 = 143;

/// gdb's numbers for the classic signals of Linux, from 1 on: hangup, interrupt and so on.
const CLASSIC: [u8; 31] = [
    1, 2, 3, 4, 5, 6, 10, 8, 9, 30, 11, 31, 13, 14, 15, UNKNOWN, 20, 19, 17, 18, 21, 22, 16, 24,
    25, 26, 27, 28, 23, 32, 12,
];

/// A signal of Linux by the number that a client has for it.
pub fn of(signal: i32, client: &Told) -> u8 {
    let number = u8::try_from(signal).unwrap_or(UNKNOWN);
    if client.is_lldb() { number } else { of_gdb(number) }
}

fn of_gdb(signal: u8) -> u8 {
    match signal {
        0 => 0,
        32 => 77,
        33..=63 => signal + 12,
        64 => 78,
        signal => CLASSIC.get(usize::from(signal) - 1).copied().unwrap_or(UNKNOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::of_gdb;

    #[test]
    fn numbers_are_those_of_gdb_s_table() {
        // SIGBUS, SIGUSR1, SIGCHLD, SIGSYS, the first and last of the real-time ones.
        for (signal, number) in
            [(7, 10), (10, 30), (17, 20), (31, 12), (34, 46), (64, 78), (200, 143)]
        {
            assert_eq!(of_gdb(signal), number, "{signal}");
        }
    }
}
