//! The table is complete, its rules hold on known cases, and no argument can break it.

use super::*;
use crate::number as n;
use std::collections::BTreeMap;

/// Memory of a few pages.
#[derive(Default)]
struct Pages(BTreeMap<u64, [u8; 0x1000]>);

impl Pages {
    fn with(mut self, address: u64, bytes: &[u8]) -> Self {
        for (at, byte) in (address..).zip(bytes) {
            self.0.entry(at & !0xfff).or_insert([0; 0x1000])[(at & 0xfff) as usize] = *byte;
        }
        self
    }

    fn longs(self, address: u64, longs: &[u64]) -> Self {
        let bytes: Vec<u8> = longs.iter().flat_map(|long| long.to_le_bytes()).collect();
        self.with(address, &bytes)
    }
}

impl Peek for Pages {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        out.iter_mut().enumerate().all(|(at, byte)| {
            let at = address.wrapping_add(at as u64);
            let page = self.0.get(&(at & !0xfff));
            page.is_some_and(|page| {
                *byte = page[(at & 0xfff) as usize];
                true
            })
        })
    }
}

/// The ranges of a call that finds `was` and leaves `is`.
fn ranges(number: u64, a: &[u64], answer: i64, was: &Pages, is: &Pages) -> Vec<(u64, u64)> {
    let mut arguments = [0; 6];
    arguments[..a.len()].copy_from_slice(a);
    let before = before(number, arguments, was);
    let mut out = Vec::new();
    assert_eq!(written(number, arguments, answer, &before, is, &mut out), Known::Yes);
    out.iter().map(|range| (range.address, range.length)).collect()
}

/// The ranges of a call whose memory does not matter.
fn plain(number: u64, arguments: &[u64], answer: i64) -> Vec<(u64, u64)> {
    ranges(number, arguments, answer, &Pages::default(), &Pages::default())
}

#[test]
fn structures_have_the_sizes_of_the_kernel() {
    use std::mem::size_of;
    assert_eq!(size_of::<libc::stat>(), 144);
    assert_eq!(size_of::<libc::statfs>(), 120);
    assert_eq!(size_of::<libc::statx>(), 256);
    assert_eq!(size_of::<libc::timex>(), 208);
    assert_eq!(size_of::<libc::utsname>(), 390);
    assert_eq!(size_of::<libc::sysinfo>(), 112);
    assert_eq!(size_of::<libc::shmid_ds>(), 112);
    assert_eq!(size_of::<libc::msqid_ds>(), 120);
    assert_eq!(size_of::<libc::semid_ds>(), 104);
    assert_eq!(size_of::<libc::user_regs_struct>(), 216);
    assert_eq!(size_of::<libc::user_fpregs_struct>(), 512);
    assert_eq!(size_of::<libc::mq_attr>(), 64);
}

#[test]
fn reading_writes_what_was_read() {
    assert_eq!(plain(n::read, &[3, 0x1000, 100], 7), [(0x1000, 7)]);
    assert_eq!(plain(n::read, &[3, 0x1000, 100], 0), []);
    assert_eq!(plain(n::read, &[3, 0x1000, 100], -4), []);
    assert_eq!(plain(n::write, &[3, 0x1000, 100], 100), []);
    // What it would take, but there was no room.
    assert_eq!(plain(n::getxattr, &[1, 2, 0, 0], 30), []);
    // Cut off by the receiver's wish to know how long the message was.
    assert_eq!(plain(n::recvfrom, &[3, 0x1000, 4, 0x20, 0, 0], 30), [(0x1000, 4)]);
}

#[test]
fn vectors_are_taken_as_they_were_before_the_call() {
    let was = Pages::default().longs(0x1000, &[0x1000, 8, 0x3000, 8, 0x5000, 8]);
    let is = Pages::default().longs(0x1000, &[0; 6]);
    let got = ranges(n::readv, &[3, 0x1000, 3], 12, &was, &is);
    assert_eq!(got, [(0x1000, 8), (0x3000, 4)]);
    assert_eq!(ranges(n::readv, &[3, 0x1000, 1025], 12, &was, &is), []);
}

#[test]
fn a_fault_leaves_what_lies_before_it() {
    let memory = Pages::default().with(0x1ff0, &[0]);
    let got = ranges(n::read, &[3, 0x1ff0, 100], -14, &memory, &memory);
    assert_eq!(got, [(0x1ff0, 16)]);
    assert_eq!(ranges(n::fstat, &[3, 0x2000], -14, &memory, &memory), []);
}

#[test]
fn lengths_that_are_asked_and_answered() {
    let was = Pages::default().with(0x1000, &16u32.to_le_bytes());
    let is = Pages::default().with(0x1000, &110u32.to_le_bytes());
    let got = ranges(n::accept, &[3, 0x2000, 0x1000], 5, &was, &is);
    assert_eq!(got, [(0x2000, 16), (0x1000, 4)]);
    assert_eq!(ranges(n::accept, &[3, 0, 0], 5, &was, &is), []);
    let got = ranges(n::getsockopt, &[3, 1, 17, 0x2000, 0x1000], 0, &is, &was);
    assert_eq!(got, [(0x2000, 16), (0x1000, 4)]);
}

#[test]
fn a_message_has_buffers_a_name_and_control_data() {
    let header = |name: u64, control: u64| [0x4000, name, 0x2000, 1, 0x5000, control, 0];
    let was = Pages::default().longs(0x1000, &header(128, 256)).longs(0x2000, &[0x3000, 64]);
    let is = Pages::default().longs(0x1000, &header(16, 24)).longs(0x5000, &[0; 3]);
    let got = ranges(n::recvmsg, &[3, 0x1000, 0], 10, &was, &is);
    let expected = [(0x3000, 10), (0x4000, 16), (0x5000, 24), (0x1008, 4), (0x1028, 12)];
    assert_eq!(got, expected);
    // Credentials of the peer may come without a message, and the header does not tell.
    let got = ranges(n::recvmsg, &[3, 0x1000, 0], -11, &was, &is);
    assert_eq!(got, [(0x5000, 256)]);
    assert_eq!(ranges(n::recvmsg, &[3, 0x1000, 0], -9, &was, &is), []);
}

#[test]
fn calls_that_fail_and_write() {
    let memory = Pages::default().with(0x1000, &[0]).with(0x2000, &[0]);
    let after =
        |number, arguments: &[u64], error: i64| ranges(number, arguments, -error, &memory, &memory);
    assert_eq!(after(n::nanosleep, &[0x1000, 0x2000], 4), [(0x2000, 16)]);
    assert_eq!(after(n::poll, &[0x1000, 2, 5], 4), [(0x1000, 16)]);
    assert_eq!(after(n::select, &[5, 0x1000, 0, 0, 0x2000], 4), [(0x2000, 16)]);
    assert_eq!(after(n::waitid, &[0, 0, 0x1000, 4, 0x2000], 10), [(0x1000, 28)]);
    assert_eq!(after(n::wait4, &[0, 0x1000, 0, 0x2000], 10), []);
}

#[test]
fn requests_select_rows() {
    assert_eq!(plain(n::ioctl, &[0, 0x5401, 0x1000], 0), [(0x1000, 36)]);
    assert_eq!(plain(n::ioctl, &[0, 0x5402, 0x1000], 0), []);
    assert_eq!(plain(n::ioctl, &[0, 0xffff_ffff_8004_5430, 0x1000], 0), [(0x1000, 4)]);
    // Not listed, but of an honest family, and the number says that eight bytes come back.
    assert_eq!(plain(n::ioctl, &[0, 0x8008_4502, 0x1000], 0), [(0x1000, 8)]);
    assert_eq!(plain(n::fcntl, &[0, 5, 0x1000], 0), [(0x1000, 32)]);
    assert_eq!(plain(n::prctl, &[16, 0x1000], 0), [(0x1000, 16)]);
    assert_eq!(plain(n::arch_prctl, &[0x1003, 0x1000], 0), [(0x1000, 8)]);
    assert_eq!(plain(n::semctl, &[1, 0, 2, 0x1000], 0), [(0x1000, 104)]);
}

#[test]
fn what_is_not_known_is_said_unless_the_kernel_refused() {
    let ask = |number, arguments, answer| {
        let memory = Pages::default();
        written(number, arguments, answer, &Before::default(), &memory, &mut Vec::new())
    };
    assert_eq!(ask(n::io_uring_setup, [0; 6], 3), Known::NotInTable);
    assert_eq!(ask(n::io_uring_setup, [0; 6], -38), Known::Yes);
    assert_eq!(ask(n::ioctl, [0, 0xc010_6400, 0x1000, 0, 0, 0], 0), Known::NotInTable);
    assert_eq!(ask(n::ioctl, [0, 0xc010_6400, 0x1000, 0, 0, 0], -25), Known::Yes);
    // A transfer over USB: the number says that the kernel writes here, but it writes elsewhere, later.
    assert_eq!(ask(n::ioctl, [0, 0x8038_550a, 0x1000, 0, 0, 0], 0), Known::NotInTable);
    assert_eq!(ask(n::ioctl, [0, 0x8010_4592, 0x1000, 0, 0, 0], 0), Known::NotInTable);
    assert_eq!(ask(400, [0; 6], -38), Known::Yes);
    assert_eq!(ask(400, [0; 6], 0), Known::NotInTable);
    assert_eq!(ask(u64::MAX, [0; 6], i64::MIN), Known::NotInTable);
    assert!(reason(n::bpf, [0; 6]).contains("recording"));
}

/// Memory at all edges of address space that holds the same byte.
struct Filled(u8);

impl Peek for Filled {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        out.fill(self.0);
        matches!(address & 0xfff_0000, 0 | 0xfff_0000)
    }
}

/// Arguments at the edges, in every place of every call and request, with every kind of answer:
/// nothing panics, and no range runs past the top of memory.
#[test]
fn hostile_arguments_break_nothing() {
    let edges = [0, 1, 0x1000, 0x7fff_ffff_f000, u64::MAX - 7, u64::MAX];
    let answers = [0, 1, i64::MAX, i64::MIN, -1, -14, -22, -4];
    let (mut out, mut taken) = (Vec::new(), Vec::new());
    for entry in entries() {
        for (turn, edge) in edges.iter().enumerate() {
            let other = edges[(turn + 3) % edges.len()];
            let mut arguments = [*edge, other, *edge, other, *edge, other];
            if let Some(choice) = entry.choice
                && let Some(call) = get(entry.number)
                && let Writes::Choice { argument, .. } = call.row.writes
            {
                arguments[argument] = choice;
            }
            for (fill, answer) in answers.iter().enumerate() {
                let memory = Filled([0, 1, 0x7f, 0xff][fill % 4]);
                let before = before(entry.number, arguments, &memory);
                out.clear();
                written(entry.number, arguments, *answer, &before, &memory, &mut out);
                taken.clear();
                reads(entry.number, arguments, &memory, &mut taken);
                shorten(*answer, &mut taken);
                for range in out.iter().chain(taken.iter().map(|read| &read.range)) {
                    assert!(range.length > 0 && range.address > 0, "{entry:?} {range:?}");
                    assert!(
                        range.address.checked_add(range.length - 1).is_some(),
                        "{entry:?} {range:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn of_the_address_of_a_socket_only_what_is_looked_at_counts() {
    let judged = |name: &[u8], length: u64| {
        let memory = Pages::default().with(0x1000, name);
        let mut taken = Vec::new();
        reads(number::connect, [3, 0x1000, length, 0, 0, 0], &memory, &mut taken);
        let whole = taken.iter().any(|read| read.range.length == length);
        assert!(whole, "the kernel copies all of it");
        let bytes = taken.iter().filter(|read| read.content == Content::Bytes);
        bytes.map(|read| read.range.length).collect::<Vec<_>>()
    };
    assert_eq!(judged(b"\x01\0/run/nscd\0garbage", 110), [12]);
    assert_eq!(judged(b"\x01\0\0hidden", 9), [9], "a name that is no path");
    assert_eq!(judged(b"\x02\0\x1f\x90\x7f\0\0\x01garbage!", 16), [8]);
}
