//! Sockets: addresses, messages, options.

use super::call::{self, Call};
use super::row::Part::Always;
use super::row::{Row, refused};
use super::{Before, Known, Peek};
use base::system_call::number as n;

pub const ROWS: &[(u64, Row)] = &[
    (n::accept, Row::around(before_address, address)),
    (n::accept4, Row::around(before_address, address)),
    (n::getsockname, Row::around(before_address, address)),
    (n::getpeername, Row::around(before_address, address)),
    (n::recvfrom, Row::around(before_receive, receive)),
    (n::recvmsg, Row::around(before_message, message)),
    (n::recvmmsg, Row::around(before_messages, messages)),
    (n::sendmmsg, Row::after(sent)),
    // The descriptors are written before the sockets are made, which may yet fail.
    (n::socketpair, Row::Writes(&[Always(3, 8)])),
    (n::getsockopt, Row::around(before_option, option)),
    (n::setsockopt, Row::after(set_option)),
];

pub const NOTHING: &[u64] =
    &[n::socket, n::connect, n::bind, n::listen, n::shutdown, n::sendto, n::sendmsg];

/// A message to be received, as `struct msghdr` says before the call.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    header: u64,
    name: u64,
    name_room: u64,
    control: u64,
    control_room: u64,
    /// Its buffers among [`Before::pieces`].
    first: usize,
    end: usize,
}

/// Offsets in `struct msghdr`, and the size of `struct mmsghdr`, which ends in the length received.
const NAME_LENGTH: u64 = 8;
const PIECES: u64 = 16;
const CONTROL: u64 = 32;
const CONTROL_LENGTH: u64 = 40;
const LENGTH: u64 = 56;
const WITH_LENGTH: u64 = 64;
/// The kernel takes at most this many messages in one call.
const MOST_MESSAGES: u64 = 1024;

fn before_address(a: &[u64; 6], memory: &dyn Peek, before: &mut Before) {
    before.words[0] = call::word(memory, a[2]);
}

fn address(call: &mut Call<'_>) -> Known {
    let [_, address, length, ..] = call.arguments;
    if call.wrote() {
        sized(call, address, length);
    }
    Known::Yes
}

/// Bytes at `address`, and at `length` how many there were to tell; what room there was is the
/// first word of [`Before`].
fn sized(call: &mut Call<'_>, address: u64, length: u64) {
    if address == 0 {
        return;
    }
    let room = call.before.words[0];
    let told = if call.failed() { room } else { call.word(length).min(room) };
    call.put(address, told);
    call.put(length, 4);
}

fn before_receive(a: &[u64; 6], memory: &dyn Peek, before: &mut Before) {
    if a[4] != 0 {
        before.words[0] = call::word(memory, a[5]);
    }
}

fn receive(call: &mut Call<'_>) -> Known {
    let [_, buffer, room, _, address, length] = call.arguments;
    if call.wrote() {
        call.put(buffer, call.amount().min(room));
        sized(call, address, length);
    }
    Known::Yes
}

fn before_message(a: &[u64; 6], memory: &dyn Peek, before: &mut Before) {
    look_at_message(memory, a[1], before);
}

fn before_messages(a: &[u64; 6], memory: &dyn Peek, before: &mut Before) {
    for index in 0..(a[2] & 0xffff_ffff).min(MOST_MESSAGES) {
        if !look_at_message(memory, a[1].wrapping_add(WITH_LENGTH * index), before) {
            return;
        }
    }
}

fn look_at_message(memory: &dyn Peek, header: u64, before: &mut Before) -> bool {
    let mut bytes = [0; LENGTH as usize];
    if !memory.read(header, &mut bytes) {
        return false;
    }
    let long = |at: u64| {
        bytes[at as usize..][..8].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    };
    let first = before.pieces.len();
    call::pieces(memory, long(PIECES), long(PIECES + 8), &mut before.pieces);
    before.messages.push(Message {
        header,
        name: long(0),
        name_room: long(NAME_LENGTH) & 0xffff_ffff,
        control: long(CONTROL),
        control_room: long(CONTROL_LENGTH),
        first,
        end: before.pieces.len(),
    });
    true
}

fn message(call: &mut Call<'_>) -> Known {
    let before = call.before;
    for message in &before.messages {
        if call.wrote() {
            received(call, message, call.amount());
        } else {
            missed(call, message);
        }
    }
    Known::Yes
}

/// A local socket tells who the peer is even if there is nothing to be received; the header then
/// does not say so.
fn missed(call: &mut Call<'_>, message: &Message) {
    if !refused(call.answer) {
        call.put_mapped(message.control, message.control_room);
    }
}

/// What `recvmsg` writes for one message: buffers, the sender's name, control data, and the fields
/// of the header that say how much of each.
fn received(call: &mut Call<'_>, message: &Message, bytes: u64) {
    let before = call.before;
    call.spread(&before.pieces[message.first..message.end], bytes);
    let told = |room: u64, told: u64| if call.failed() { room } else { told.min(room) };
    let header = message.header;
    let name = told(message.name_room, call.word(header.wrapping_add(NAME_LENGTH)));
    let control =
        told(message.control_room, call::long(call.memory, header.wrapping_add(CONTROL_LENGTH)));
    call.put(message.name, name);
    // What did not fit into memory was dropped, but counted.
    call.put_mapped(message.control, control);
    call.put(header.wrapping_add(NAME_LENGTH), 4);
    // The length of control data, and behind it the flags.
    call.put(header.wrapping_add(CONTROL_LENGTH), 12);
}

fn messages(call: &mut Call<'_>) -> Known {
    let before = call.before;
    let amount = if call.wrote() { call.amount() } else { 0 };
    let count = amount.min(before.messages.len() as u64) as usize;
    let (full, empty) = before.messages.split_at(count);
    for message in full {
        let length = message.header.wrapping_add(LENGTH);
        received(call, message, call.word(length));
        call.put(length, 4);
    }
    if let Some(message) = empty.first() {
        missed(call, message);
    }
    if count > 0 {
        // What is left of the time.
        call.put(call.arguments[4], 16);
    }
    Known::Yes
}

/// `sendmmsg` says of each message how much of it was sent.
fn sent(call: &mut Call<'_>) -> Known {
    if call.wrote() {
        let [_, messages, count, ..] = call.arguments;
        for index in 0..call.amount().min(count & 0xffff_ffff).min(MOST_MESSAGES) {
            call.put(messages.wrapping_add(WITH_LENGTH * index).wrapping_add(LENGTH), 4);
        }
    }
    Known::Yes
}

fn before_option(a: &[u64; 6], memory: &dyn Peek, before: &mut Before) {
    before.words[0] = call::word(memory, a[4]);
}

fn option(call: &mut Call<'_>) -> Known {
    const SO_GET_FILTER: i32 = 26;
    const ZEROCOPY_RECEIVE: i32 = 35;
    /// Above these numbers the options of IP are tables of the packet filter.
    const FILTERS: i32 = 64;
    let [_, level, name, value, length, _] = call.arguments;
    let room = call.before.words[0];
    match (level as i32, name as i32) {
        // It maps pages of the network card.
        (libc::SOL_TCP, ZEROCOPY_RECEIVE) if !call.failed() => return Known::NotInTable,
        // Some say what room it would have taken.
        _ if call.is(libc::ERANGE) => call.put(length, 4),
        _ if !call.wrote() => {}
        // A length in instructions of eight bytes.
        (libc::SOL_SOCKET, SO_GET_FILTER) => {
            let count = if call.failed() { room } else { call.word(length).min(room) };
            call.put(value, 8 * count);
            call.put(length, 4);
        }
        (libc::SOL_IP | libc::SOL_IPV6, FILTERS..) => {
            call.put(value, room);
            call.put(length, 4);
        }
        (
            libc::SOL_SOCKET
            | libc::SOL_IP
            | libc::SOL_IPV6
            | libc::SOL_TCP
            | libc::SOL_UDP
            | libc::SOL_NETLINK
            | libc::SOL_PACKET,
            _,
        ) => sized(call, value, length),
        _ => {
            call.put(value, room);
            call.put(length, 4);
        }
    }
    Known::Yes
}

/// Setting an option writes nothing, but for tables of the packet filter, whose old counters are
/// given back, and rings, through which the kernel writes from then on.
fn set_option(call: &mut Call<'_>) -> Known {
    const FILTER_REPLACE: [i32; 3] = [64, 96, 128];
    const RECEIVE_RING: i32 = 5;
    const SEND_RING: i32 = 13;
    const SOL_RDS: i32 = 276;
    const SOL_XDP: i32 = 283;
    let [_, level, name, ..] = call.arguments;
    let unknown = match (level as i32, name as i32) {
        (libc::SOL_IP | libc::SOL_IPV6, name) => FILTER_REPLACE.contains(&name),
        (libc::SOL_PACKET, name) => name == RECEIVE_RING || name == SEND_RING,
        (SOL_XDP | SOL_RDS, _) => true,
        _ => false,
    };
    if unknown && !call.failed() { Known::NotInTable } else { Known::Yes }
}
