//! What this process is called: the guest may put its children into a PID namespace, where they have
//! other numbers than the host knows them by.
//!
//! The host hands down its own `/proc`, open: whatever the guest mounts or changes its root to,
//! `self` in there is this process by the host's number.

use super::report;
use crate::sys::{self, syscall};

/// The numbers of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// As the host knows it.
    pub host: i32,
    /// As the process knows it that made this one: what `fork` has answered there.
    pub parents: i32,
    /// In how many PID namespaces it has a number, from the host's on.
    levels: usize,
}

impl Numbers {
    /// Of a process that has just been started; `folder` is the host's `/proc`.
    pub fn of_this(folder: i32) -> Self {
        let own = Self::ask(folder);
        report::set_sender(own.host);
        own
    }

    fn ask(folder: i32) -> Self {
        match read(folder) {
            Some(numbers) => Self { host: numbers[0], parents: numbers[0], levels: numbers.len() },
            None => Self { host: sys::getpid(), parents: sys::getpid(), levels: 1 },
        }
    }

    /// Whether the process calls others what the host calls them.
    pub fn is_hosts(&self) -> bool {
        self.levels == 1
    }

    /// Of a child that this process has just made, in that child.
    #[must_use]
    pub fn of_child(&self, folder: i32) -> Self {
        if self.levels == 1 && link(folder).is_none_or(|host| host == sys::getpid()) {
            report::set_sender(sys::getpid());
            return Self { host: sys::getpid(), parents: sys::getpid(), levels: 1 };
        }
        let child = Self::of_this(folder);
        let parents = read(folder).and_then(|numbers| numbers.get(self.levels - 1).copied());
        Self { parents: parents.unwrap_or(child.host), ..child }
    }
}

/// The number that the host knows this process by.
fn link(folder: i32) -> Option<i32> {
    let mut text = [0u8; 16];
    // SAFETY: the kernel reads a terminated path and writes at most the buffer's length.
    let length = unsafe {
        syscall!(libc::SYS_readlinkat, folder, c"self".as_ptr(), text.as_mut_ptr(), text.len())
    };
    let text = text.get(..usize::try_from(length).ok()?)?;
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// All numbers of this process, the host's first.
fn read(folder: i32) -> Option<Vec<i32>> {
    let mut text = vec![0u8; 8192];
    // SAFETY: the kernel reads a terminated path, and writes at most the buffer's length.
    let length = unsafe {
        let path = c"self/status".as_ptr();
        let file = syscall!(libc::SYS_openat, folder, path, libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return None;
        }
        let length = syscall!(libc::SYS_read, file, text.as_mut_ptr(), text.len());
        syscall!(libc::SYS_close, file);
        length
    };
    text.truncate(usize::try_from(length).ok()?);
    parse(&String::from_utf8_lossy(&text))
}

fn parse(status: &str) -> Option<Vec<i32>> {
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    let numbers: Vec<i32> =
        numbers.split_ascii_whitespace().map_while(|number| number.parse().ok()).collect();
    (!numbers.is_empty()).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn numbers_are_read_from_the_outside_in() {
        let status = "Name:\tsh\nNStgid:\t7\t3\t1\nNSpid:\t70\t30\t1\nNSpgid:\t70\t30\t1\n";
        assert_eq!(parse(status), Some(vec![70, 30, 1]));
        assert_eq!(parse("Name:\tsh\n"), None);
    }

    #[test]
    fn without_a_namespace_there_is_one_number() {
        let folder = std::fs::File::open("/proc").expect("/proc");
        let own = Numbers::of_this(folder.as_raw_fd());
        assert_eq!((own.host, own.parents), (sys::getpid(), sys::getpid()));
        assert_eq!(own.of_child(folder.as_raw_fd()).host, sys::getpid());
        assert_eq!(Numbers::of_this(-1).host, sys::getpid());
    }
}
