//! Buffers in several pieces, of `readv`, and messages, of `recvmsg`: the kernel is given one piece for
//! all of them.

use super::{BounceBuffers, LARGEST, Room, What, write};
use crate::runner::engine::Engine;
use crate::runner::guest::Checked;
use crate::runner::memory::Memory;
use crate::runner::signal::frame::GuestMemory;

/// The kernel takes at most so many pieces, and messages.
const MOST: u64 = 1024;

/// A list of pieces of one element.
type Vector = [u64; 2];

/// `struct mmsghdr` as words: name, its length, pieces, their number, control data, its length,
/// flags; and the length received.
type Head = [u64; 8];
const NAME: usize = 0;
const NAME_LENGTH: usize = 1;
const PIECES: usize = 2;
const COUNT: usize = 3;
const CONTROL: usize = 4;
const CONTROL_LENGTH: usize = 5;
const FLAGS: usize = 6;
const RECEIVED: usize = 7;

/// Messages, put aside.
pub struct Messages {
    /// What the kernel is given: one behind the other.
    heads: Vec<Head>,
    each: Vec<Message>,
    /// Whether each says how long it is; otherwise that is the answer.
    several: bool,
}

struct Message {
    /// The guest's head of it.
    head: u64,
    data: Room,
    name: Room,
    control: Room,
    /// Keeps what the kernel reads where it is.
    _vector: Box<Vector>,
}

/// The pieces of `readv` and its like.
pub fn buffers(memory: &Memory, arguments: &mut [u64; 6]) -> Option<BounceBuffers> {
    let room = Room::new(memory, pieces(arguments[1], arguments[2])?, What::Bytes(0))?;
    let vector = Box::new([room.bytes.as_ptr() as u64, room.bytes.len() as u64]);
    arguments[1] = vector.as_ptr() as u64;
    arguments[2] = 1;
    Some(BounceBuffers { rooms: vec![room], _vector: Some(vector), messages: None })
}

/// The messages of `recvmsg`, or of `recvmmsg`.
pub fn messages(memory: &Memory, arguments: &mut [u64; 6], several: bool) -> Option<BounceBuffers> {
    let count = if several { arguments[2] & 0xffff_ffff } else { 1 };
    let size = if several { size_of::<Head>() } else { size_of::<Head>() - 8 } as u64;
    let (mut heads, mut each) = (Vec::new(), Vec::new());
    let mut total = 0;
    for index in 0..count.min(MOST) {
        let at = arguments[1].checked_add(index * size)?;
        let (head, message) = message(memory, at, size as usize)?;
        total += message.data.bytes.len() as u64;
        heads.push(head);
        each.push(message);
    }
    if total > LARGEST {
        return None;
    }
    let messages = Messages { heads, each, several };
    arguments[1] = messages.heads.as_ptr() as u64;
    if several {
        arguments[2] = messages.heads.len() as u64;
    }
    Some(BounceBuffers { messages: Some(messages), ..BounceBuffers::default() })
}

fn message(memory: &Memory, at: u64, size: usize) -> Option<(Head, Message)> {
    let mut head: Head = [0; 8];
    let mut bytes = [0; size_of::<Head>()];
    if !memory.is_writable(at, size as u64) || !Checked.read(at, &mut bytes[..size]) {
        return None;
    }
    for (word, bytes) in head.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    let room = |address: u64, length: u64, what| {
        let places = if address == 0 { Vec::new() } else { vec![(address, length)] };
        Room::new(memory, places, what)
    };
    let name = room(head[NAME], head[NAME_LENGTH] & 0xffff_ffff, What::All)?;
    let control = room(head[CONTROL], head[CONTROL_LENGTH], What::All)?;
    let data = Room::new(memory, pieces(head[PIECES], head[COUNT])?, What::Bytes(0))?;
    let vector = Box::new([data.bytes.as_ptr() as u64, data.bytes.len() as u64]);
    for (word, room) in [(NAME, &name), (CONTROL, &control)] {
        if head[word] != 0 {
            head[word] = room.bytes.as_ptr() as u64;
        }
    }
    head[PIECES] = vector.as_ptr() as u64;
    head[COUNT] = 1;
    Some((head, Message { head: at, data, name, control, _vector: vector }))
}

impl Messages {
    /// Gives the guest those that came.
    pub fn give(self, engine: &mut Engine, answer: i64) -> bool {
        let Ok(answer) = usize::try_from(answer) else { return true };
        let count = if self.several { answer } else { 1 };
        self.heads.iter().zip(&self.each).take(count).all(|(head, message)| {
            let length = if self.several { head[RECEIVED] as u32 as usize } else { answer };
            let low = |word: usize| (head[word] as u32).to_le_bytes();
            let at = |word: usize| message.head + 8 * word as u64;
            message.data.give_bytes(engine, length)
                && message.name.give_bytes(engine, head[NAME_LENGTH] as u32 as usize)
                && message.control.give_bytes(engine, head[CONTROL_LENGTH] as usize)
                && write(engine, at(NAME_LENGTH), &low(NAME_LENGTH))
                && write(engine, at(CONTROL_LENGTH), &head[CONTROL_LENGTH].to_le_bytes())
                && write(engine, at(FLAGS), &low(FLAGS))
                && (!self.several || write(engine, at(RECEIVED), &low(RECEIVED)))
        })
    }
}

/// Where the pieces of a list are.
fn pieces(list: u64, count: u64) -> Option<Vec<(u64, u64)>> {
    if count > MOST {
        return None;
    }
    let mut bytes = vec![0; count as usize * size_of::<Vector>()];
    if count > 0 && !Checked.read(list, &mut bytes) {
        return None;
    }
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    Some(bytes.chunks_exact(16).map(|piece| (word(&piece[..8]), word(&piece[8..]))).collect())
}
