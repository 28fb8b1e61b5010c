//! The stream that a client speaks over. Packets come whole and leave whole, and what `gdbstub` does not know is looked
//! after here: conditions that come with breakpoints are taken out and kept for the session, and the client is told that
//! it may send them; so are the signals that it does not want to hear of.

use gdbstub::conn::{Connection, ConnectionExt};
use investigate::debugging::bytecode::Condition;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a client is connected by.
pub trait Socket: Read + Write {
    /// Reading comes back at once if there is nothing, or waits.
    fn set_nonblocking(&self, on: bool) -> io::Result<()>;
}

impl Socket for UnixStream {
    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        Self::set_nonblocking(self, on)
    }
}

impl Socket for TcpStream {
    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        Self::set_nonblocking(self, on)
    }
}

/// What a client has said beside what `gdbstub` hands on.
#[derive(Clone, Default)]
pub struct Told(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    conditions: BTreeMap<u64, Vec<Condition>>,
    passed: Option<BTreeSet<u8>>,
    /// Whether that is news.
    changed: bool,
    lldb: bool,
}

impl Told {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The conditions of the breakpoint that has just been set, if it has any.
    pub fn conditions(&self, pc: u64) -> Vec<Condition> {
        self.lock().conditions.remove(&pc).unwrap_or_default()
    }

    /// Whether the client has said anew which signals it wants to hear of.
    pub fn has_changed(&self) -> bool {
        std::mem::take(&mut self.lock().changed)
    }

    /// Whether the client is LLDB, which means other things by some numbers.
    pub fn is_lldb(&self) -> bool {
        self.lock().lldb
    }

    /// Whether the client wants to hear of a signal, by its own number.
    pub fn hears_of(&self, signal: u8) -> bool {
        self.lock().passed.as_ref().is_some_and(|passed| !passed.contains(&signal))
    }
}

/// A connected client.
pub struct Client {
    socket: Box<dyn Socket>,
    /// What has come and is no whole packet yet.
    part: Vec<u8>,
    /// What is handed on.
    ready: VecDeque<u8>,
    answer: Vec<u8>,
    /// Whether packets are acknowledged one by one: until the client wants that no longer.
    acknowledges: bool,
    told: Told,
}

/// Longest packet that is waited for; what is longer is handed on as it is, to be refused.
const LONGEST: usize = 1 << 16;

impl Client {
    /// Speaks over a socket.
    pub fn new(socket: impl Socket + 'static) -> Self {
        Self {
            socket: Box::new(socket),
            part: Vec::new(),
            ready: VecDeque::new(),
            answer: Vec::new(),
            acknowledges: true,
            told: Told::default(),
        }
    }

    /// What it says beside the protocol's stub.
    pub fn told(&self) -> Told {
        self.told.clone()
    }

    /// Takes what has come. An end is an error: a client says when it leaves.
    fn receive(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4096];
        match self.socket.read(&mut bytes)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            got => {
                self.part.extend(&bytes[..got]);
                self.sort_out()
            }
        }
    }

    /// Hands on what is whole.
    fn sort_out(&mut self) -> io::Result<()> {
        while let Some(first) = self.part.first() {
            let length = match first {
                b'$' => packet_length(&self.part),
                _ => Some(1),
            };
            let Some(length) = length.or((self.part.len() > LONGEST).then_some(self.part.len()))
            else {
                break;
            };
            let packet: Vec<u8> = self.part.drain(..length).collect();
            self.take(packet)?;
        }
        Ok(())
    }

    fn take(&mut self, packet: Vec<u8>) -> io::Result<()> {
        let Some(body) = sound_body(&packet) else {
            self.ready.extend(packet);
            return Ok(());
        };
        if body == b"QStartNoAckMode" {
            self.acknowledges = false;
        }
        if body == b"QThreadSuffixSupported" {
            self.told.lock().lldb = true;
        }
        if let Some(signals) = body.strip_prefix(b"QPassSignals:") {
            let mut told = self.told.lock();
            (told.passed, told.changed) = (Some(numbers(signals)), true);
            drop(told);
            let ack: &[u8] = if self.acknowledges { b"+" } else { b"" };
            self.socket.write_all(&[ack, &framed(b"OK")].concat())?;
        } else if let Some((breakpoint, pc, conditions)) = conditional(body) {
            self.told.lock().conditions.insert(pc, conditions);
            self.ready.extend(framed(breakpoint));
        } else {
            self.ready.extend(packet);
        }
        Ok(())
    }
}

/// The length of the packet that some bytes begin with, if it is whole.
fn packet_length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(|byte| *byte == b'#')? + 3;
    (end <= bytes.len()).then_some(end)
}

/// What a packet says, if its sum is right.
fn sound_body(packet: &[u8]) -> Option<&[u8]> {
    let length = packet.len().checked_sub(4)?;
    let body = packet.strip_prefix(b"$")?.get(..length)?;
    let sum = packet.get(length + 2..).and_then(|digits| std::str::from_utf8(digits).ok());
    let sum = sum.and_then(|digits| u8::from_str_radix(digits, 16).ok());
    (sum == Some(sum_of(body))).then_some(body)
}

fn sum_of(body: &[u8]) -> u8 {
    body.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut packet = [b"$", body, b"#"].concat();
    packet.extend(format!("{:02x}", sum_of(body)).bytes());
    packet
}

/// Numbers between semicolons; what is none is left out.
fn numbers(text: &[u8]) -> BTreeSet<u8> {
    let each = text.split(|byte| *byte == b';').filter_map(|part| std::str::from_utf8(part).ok());
    each.filter_map(|part| u8::from_str_radix(part, 16).ok()).collect()
}

/// A breakpoint with conditions: the packet without them, its address, and they.
fn conditional(body: &[u8]) -> Option<(&[u8], u64, Vec<Condition>)> {
    if !body.starts_with(b"Z0,") && !body.starts_with(b"Z1,") {
        return None;
    }
    let end = body.iter().position(|byte| *byte == b';')?;
    let (breakpoint, rest) = (&body[..end], &body[end + 1..]);
    let address = breakpoint[3..].split(|byte| *byte == b',').next()?;
    let pc = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()?;
    Some((breakpoint, pc, conditions(rest)?))
}

/// `X LENGTH,CODE` again and again; nothing if there is something else.
fn conditions(mut rest: &[u8]) -> Option<Vec<Condition>> {
    let mut all = Vec::new();
    while let Some(after) = rest.strip_prefix(b"X") {
        let comma = after.iter().position(|byte| *byte == b',')?;
        let length = usize::from_str_radix(std::str::from_utf8(&after[..comma]).ok()?, 16).ok()?;
        let digits = after.get(comma + 1..(comma + 1).checked_add(length.checked_mul(2)?)?)?;
        let pairs = digits.chunks_exact(2).map(|pair| std::str::from_utf8(pair).ok());
        let code = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect::<Option<_>>()?;
        all.push(Condition(code));
        rest = &after[comma + 1 + 2 * length..];
    }
    (rest.is_empty() && !all.is_empty()).then_some(all)
}

/// What the stub says it can do, with what is done here.
fn with_features(answer: &mut Vec<u8>) {
    const OURS: &[u8] = b";ConditionalBreakpoints+;QPassSignals+";
    let packet = answer.iter().position(|byte| *byte == b'$').unwrap_or(0);
    let Some(end) = answer.iter().rposition(|byte| *byte == b'#') else { return };
    if !answer[packet..].starts_with(b"$PacketSize=") {
        return;
    }
    let body = [&answer[packet + 1..end], OURS].concat();
    answer.truncate(packet);
    answer.extend(framed(&body));
}

impl Connection for Client {
    type Error = io::Error;

    fn write(&mut self, byte: u8) -> io::Result<()> {
        self.answer.push(byte);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        with_features(&mut self.answer);
        let sent = self.socket.write_all(&self.answer);
        self.answer.clear();
        sent
    }
}

impl ConnectionExt for Client {
    fn read(&mut self) -> io::Result<u8> {
        if !self.answer.is_empty() {
            self.flush()?;
        }
        loop {
            if let Some(byte) = self.ready.pop_front() {
                return Ok(byte);
            }
            self.receive()?;
        }
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.ready.is_empty() {
            self.socket.set_nonblocking(true)?;
            let received = self.receive();
            self.socket.set_nonblocking(false)?;
            match received {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                received => received?,
            }
        }
        Ok(self.ready.front().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Client, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        (Client::new(ours), theirs)
    }

    fn all(client: &mut Client) -> Vec<u8> {
        let mut got = Vec::new();
        while client.peek().expect("a stream").is_some() {
            got.push(client.read().expect("a byte"));
        }
        got
    }

    #[test]
    fn conditions_are_taken_out_of_breakpoints() {
        let (mut client, mut theirs) = pair();
        let told = client.told();
        let packet = framed(b"Z0,401136,1;X3,220127X2,2227");
        // In pieces, as sockets have it.
        for piece in packet.chunks(5) {
            Write::write_all(&mut theirs, piece).expect("sent");
        }
        assert_eq!(all(&mut client), framed(b"Z0,401136,1"));
        assert_eq!(
            told.conditions(0x40_1136),
            [vec![0x22, 1, 0x27], vec![0x22, 0x27]].map(Condition)
        );
        assert!(told.conditions(0x40_1136).is_empty(), "they are taken once");
    }

    #[test]
    fn what_is_not_understood_is_handed_on_as_it_is() {
        let rows: [&[u8]; 6] = [
            b"Z0,401136,1;Y3,22",
            b"Z0,xyz,1;X1,27",
            b"Z0,1,1;X9,27",
            b"Z2,1,4;X1,27",
            b"m0,4",
            b"Z0,1,1;cmds:0,X1,27",
        ];
        for body in rows {
            let (mut client, mut theirs) = pair();
            Write::write_all(&mut theirs, &framed(body)).expect("sent");
            assert_eq!(all(&mut client), framed(body));
        }
        let (mut client, mut theirs) = pair();
        Write::write_all(&mut theirs, b"+\x03$Z0,1,1;X1,27#00$#").expect("sent");
        assert_eq!(all(&mut client), b"+\x03$Z0,1,1;X1,27#00");
    }

    #[test]
    fn a_client_says_which_signals_it_does_not_hear_of() {
        let (mut client, mut theirs) = pair();
        assert!(!client.told().hears_of(30), "who has not been asked for is not told");
        Write::write_all(&mut theirs, &framed(b"QPassSignals:e;14;17")).expect("sent");
        assert_eq!(all(&mut client), b"");
        let mut answer = [0; 7];
        theirs.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"+$OK#9a");
        assert!(client.told().hears_of(30) && !client.told().hears_of(0x14));
    }

    #[test]
    fn features_are_added_to_those_of_the_stub() {
        let (mut client, mut theirs) = pair();
        client.write_all(&framed(b"PacketSize=1000;multiprocess+")).expect("kept");
        client.flush().expect("sent");
        let mut bytes = [0; 200];
        let got = Read::read(&mut theirs, &mut bytes).expect("an answer");
        let body = sound_body(&bytes[..got]).expect("a packet");
        assert!(body.ends_with(b"multiprocess+;ConditionalBreakpoints+;QPassSignals+"));
    }

    #[test]
    fn a_client_that_has_gone_is_an_error_and_no_wait() {
        let (mut client, theirs) = pair();
        drop(theirs);
        assert!(client.peek().is_err());
        assert!(client.read().is_err());
    }
}
