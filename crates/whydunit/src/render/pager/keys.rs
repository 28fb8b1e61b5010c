//! Bytes from a terminal as keys.

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A letter, or anything else that is typed.
    Letter(char),
    /// The arrows.
    Up,
    /// Down.
    Down,
    /// Left.
    Left,
    /// Right.
    Right,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// The return key.
    Enter,
    /// Backspace.
    Backspace,
    /// Escape by itself.
    Escape,
    /// What ends every program.
    Interrupt,
}

/// Puts keys together that come in parts.
#[derive(Default)]
pub struct Keys {
    waiting: Vec<u8>,
}

impl Keys {
    /// The keys in what has come. An escape at the end is the key: a terminal sends the bytes of a
    /// longer one at once.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.waiting.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut rest = &self.waiting[..];
        while let Some((first, after)) = rest.split_first() {
            let (key, used) = match (first, after) {
                (0x1b, [b'[' | b'O', tail @ ..]) => {
                    let (key, used) = sequence(tail);
                    (key, used + 2)
                }
                (0x1b, _) => (Some(Key::Escape), 1),
                (b'\r' | b'\n', _) => (Some(Key::Enter), 1),
                (0x7f | 0x08, _) => (Some(Key::Backspace), 1),
                (0x03 | 0x04, _) => (Some(Key::Interrupt), 1),
                (0..=0x1f, _) => (None, 1),
                _ => match letter(rest) {
                    Some((letter, used)) => (Some(Key::Letter(letter)), used),
                    None => break,
                },
            };
            keys.extend(key);
            rest = &rest[used.min(rest.len())..];
        }
        self.waiting = rest.to_vec();
        keys
    }
}

/// What follows an escape and a bracket, and how many bytes of it belong together.
fn sequence(tail: &[u8]) -> (Option<Key>, usize) {
    let length = tail.iter().position(|byte| (0x40..=0x7e).contains(byte));
    let Some(last) = length else { return (None, tail.len()) };
    let key = match (&tail[..last], tail[last]) {
        (_, b'A') => Some(Key::Up),
        (_, b'B') => Some(Key::Down),
        (_, b'C') => Some(Key::Right),
        (_, b'D') => Some(Key::Left),
        (b"5", b'~') => Some(Key::PageUp),
        (b"6", b'~') => Some(Key::PageDown),
        _ => None,
    };
    (key, last + 1)
}

/// The character that begins here; none if it is not all there yet.
fn letter(bytes: &[u8]) -> Option<(char, usize)> {
    let length = match bytes[0] {
        0..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => return Some((char::REPLACEMENT_CHARACTER, 1)),
    };
    let whole = bytes.get(..length)?;
    let letter = std::str::from_utf8(whole).ok().and_then(|text| text.chars().next());
    Some((letter.unwrap_or(char::REPLACEMENT_CHARACTER), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
        let mut keys = Keys::default();
        let expected = [Key::Letter('a'), Key::Up, Key::Down, Key::Enter, Key::PageDown];
        assert_eq!(keys.take(b"a\x1b[A\x1bOB\r\x1b[6~"), expected);
        assert_eq!(keys.take(b"\x1b"), [Key::Escape]);
        assert_eq!(keys.take("ü".as_bytes().split_at(1).0), []);
        assert_eq!(keys.take("ü".as_bytes().split_at(1).1), [Key::Letter('ü')]);
        assert_eq!(keys.take(b"\x1b[1;5Q\x7f\x03"), [Key::Backspace, Key::Interrupt]);
        assert_eq!(keys.take(b"\xff\x1b[12"), [Key::Letter(char::REPLACEMENT_CHARACTER)]);
    }
}
