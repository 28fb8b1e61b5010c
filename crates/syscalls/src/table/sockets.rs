//! Sockets: addresses, messages, options.

use crate::call::{self, Call};
use crate::reads::{Content, Reading};
use crate::row::Part::Always;
use crate::row::{Row, refused};
use crate::{Before, Known, Peek};

system_calls! {
    43 accept(Fd, Output, Update(VARIES)), writes Row::around(before_address, address),
        reads room_reads;
    288 accept4(Fd, Output, Update(VARIES), Flags), writes Row::around(before_address, address),
        reads room_reads;
    51 getsockname(Fd, Output, Update(4)), writes Row::around(before_address, address);
    52 getpeername(Fd, Output, Update(4)), writes Row::around(before_address, address);
    45 recvfrom(Fd, Out(2), Size, Flags, Output, Update(VARIES)),
        writes Row::around(before_receive, receive), reads receive_reads;
    47 recvmsg(Fd, Update(MESSAGE), Flags), writes Row::around(before_message, message),
        reads recvmsg_reads;
    299 recvmmsg(Fd, Update(VARIES), Size, Flags, Update(16)),
        writes Row::around(before_messages, messages), reads recvmmsg_reads;
    307 sendmmsg(Fd, Update(VARIES), Size, Flags), writes Row::after(sent), reads sendmmsg_reads;
    // The descriptors are written before the sockets are made, which may yet fail.
    53 socketpair(Number, Flags, Number, Output), writes Row::writes(&[Always(3, 8)]);
    55 getsockopt(Fd, Number, Number, Output, Update(4)),
        writes Row::around(before_option, option);
    54 setsockopt(Fd, Number, Number, In(4), Size), writes Row::after(set_option);

    // Calls that write nothing into the memory of the caller.
    41 socket(Number, Flags, Number);
    42 connect(Fd, SocketName(2), Size);
    49 bind(Fd, SocketName(2), Size);
    50 listen(Fd, Number);
    48 shutdown(Fd, Number);
    44 sendto(Fd, Data(2), Size, Flags, SocketName(5), Size);
    46 sendmsg(Fd, Input(MESSAGE), Flags), reads send_reads;
}

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
/// The size of `struct msghdr`.
const MESSAGE: u64 = LENGTH;
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

/// What room there is for an address, if one is asked for.
fn room_reads(reading: &mut Reading<'_>) {
    let [_, address, length, ..] = reading.arguments;
    if address != 0 {
        reading.parameters(length, 4);
    }
}

fn receive_reads(reading: &mut Reading<'_>) {
    let [.., address, length] = reading.arguments;
    if address != 0 {
        reading.parameters(length, 4);
    }
}

/// What a message to be sent consists of, besides its header: an address, buffers, control data.
fn outgoing(reading: &mut Reading<'_>, header: u64, content: Content) {
    const LONGEST_NAME: u64 = 128;
    let long = |at: u64| reading.long(header.wrapping_add(at));
    let (name, vector, count) = (long(0), long(PIECES), long(PIECES + 8));
    let (control, control_length) = (long(CONTROL), long(CONTROL_LENGTH));
    let name_length = reading.word(header.wrapping_add(NAME_LENGTH)).min(LONGEST_NAME);
    reading.socket_name(name, name_length);
    reading.vector(vector, count, Some(content));
    // Between its items is padding.
    reading.parameters(control, control_length);
}

fn send_reads(reading: &mut Reading<'_>) {
    outgoing(reading, reading.arguments[1], Content::Data);
}

/// The buffers of a message to be received.
fn incoming(reading: &mut Reading<'_>, header: u64) {
    let vector = reading.long(header.wrapping_add(PIECES));
    let count = reading.long(header.wrapping_add(PIECES + 8));
    reading.vector(vector, count, None);
}

fn recvmsg_reads(reading: &mut Reading<'_>) {
    incoming(reading, reading.arguments[1]);
}

/// The headers of the messages of a call that takes many.
fn headers(reading: &Reading<'_>) -> impl Iterator<Item = u64> + use<> {
    let [_, first, count, ..] = reading.arguments;
    let count = (count & 0xffff_ffff).min(MOST_MESSAGES);
    (0..count).map(move |index| first.wrapping_add(WITH_LENGTH * index))
}

fn recvmmsg_reads(reading: &mut Reading<'_>) {
    for header in headers(reading) {
        reading.parameters(header, MESSAGE);
        incoming(reading, header);
    }
}

/// The answer counts messages, not bytes.
fn sendmmsg_reads(reading: &mut Reading<'_>) {
    for header in headers(reading) {
        reading.parameters(header, MESSAGE);
        outgoing(reading, header, Content::Bytes);
    }
}
