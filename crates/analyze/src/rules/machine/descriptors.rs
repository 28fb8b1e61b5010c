//! Which descriptors are open, from the system calls that go by.

use crate::model::stacks::StackId;
use std::collections::BTreeMap;
use syscalls::number as n;

/// `EBADF`, as the kernel answers.
const BAD_DESCRIPTOR: i64 = -9;
const DUP_BY_FCNTL: [u64; 2] = [0, 1030];

/// What happened to a descriptor.
#[derive(Clone, Copy, Debug, Default)]
pub struct History {
    /// When it was last opened.
    pub opened: Option<u64>,
    /// When it was last closed.
    pub closed: Option<u64>,
    /// By which calls it was opened.
    pub opened_by: StackId,
    /// By which calls it was closed.
    pub closed_by: StackId,
    /// Whether it is open.
    pub open: bool,
}

/// What a system call has to do with descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Nothing that we follow.
    Nothing,
    /// It made this one.
    Opens(i64),
    /// It closes this one.
    Closes(i64),
    /// It used this one, and the kernel said that it is not open.
    Uses(i64),
    /// It makes two, and stores their numbers where we do not look.
    OpensTwo,
    /// It closes all from the first to the last.
    ClosesRange(i64, i64),
}

/// What a system call does.
#[must_use]
pub fn deed(call: u64, arguments: &[u64; 6], answer: i64) -> Deed {
    let first = i64::from(arguments[0] as i32);
    match call {
        n::close => Deed::Closes(first),
        n::close_range if answer == 0 && arguments[2] & 4 == 0 => {
            Deed::ClosesRange(arguments[0] as i64, arguments[1] as i64)
        }
        n::pipe | n::pipe2 | n::socketpair if answer == 0 => Deed::OpensTwo,
        _ if answer == BAD_DESCRIPTOR && first >= 0 => Deed::Uses(first),
        n::fcntl if DUP_BY_FCNTL.contains(&arguments[1]) && answer >= 0 => Deed::Opens(answer),
        n::open
        | n::creat
        | n::openat
        | n::openat2
        | n::socket
        | n::accept
        | n::accept4
        | n::dup
        | n::dup2
        | n::dup3
        | n::epoll_create1
        | n::eventfd
        | n::eventfd2
        | n::timerfd_create
        | n::signalfd
        | n::signalfd4
        | n::inotify_init
        | n::inotify_init1
        | n::memfd_create
            if answer >= 0 =>
        {
            Deed::Opens(answer)
        }
        _ => Deed::Nothing,
    }
}

/// The descriptors of a process.
#[derive(Clone, Default)]
pub struct Descriptors {
    all: BTreeMap<i64, History>,
}

impl Descriptors {
    /// What happened to a descriptor.
    #[must_use]
    pub fn get(&self, descriptor: i64) -> History {
        self.all.get(&descriptor).copied().unwrap_or_default()
    }

    /// A descriptor was made.
    pub fn open(&mut self, descriptor: i64, time: u64, stack: StackId) {
        let history = self.all.entry(descriptor).or_default();
        history.opened = Some(time);
        history.opened_by = stack;
        history.open = true;
    }

    /// A descriptor was closed.
    pub fn close(&mut self, descriptor: i64, time: u64, stack: StackId) {
        let history = self.all.entry(descriptor).or_default();
        history.closed = Some(time);
        history.closed_by = stack;
        history.open = false;
    }

    /// All from the first to the last were closed.
    pub fn close_range(&mut self, first: i64, last: i64, time: u64) {
        for (_, history) in self.all.range_mut(first..=last.max(first)) {
            history.closed = Some(time);
            history.open = false;
        }
    }

    /// Open descriptors, in order.
    pub fn open_ones(&self) -> impl Iterator<Item = i64> + '_ {
        self.all.iter().filter(|(_, history)| history.open).map(|(number, _)| *number)
    }
}
