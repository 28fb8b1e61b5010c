//! Looks through memory, character by character, as the functions are said to do.

use crate::Memory;
use crate::table::Ends;

/// Bytes that are read at once.
const PIECE: usize = 256;
/// Characters after which a search is given up: no program has such a text.
const LONGEST: u64 = 1 << 30;

/// What a call is given.
pub struct Scan<'a> {
    /// The program's memory.
    pub memory: &'a dyn Memory,
    /// Bytes of a character.
    pub width: u64,
    /// The arguments.
    pub arguments: &'a [u64; 6],
}

/// How far a search went.
pub struct Until {
    /// Characters that were looked at, the last one included.
    pub characters: u64,
    /// Whether the last one is what was looked for.
    pub found: bool,
}

impl Until {
    /// Characters before the one that was looked for.
    pub fn without_end(&self) -> u64 {
        self.characters - u64::from(self.found)
    }
}

/// The characters from an address on, until memory ends.
struct Characters<'a> {
    memory: &'a dyn Memory,
    width: usize,
    next: u64,
    piece: [u8; PIECE],
    at: usize,
    filled: usize,
}

impl Iterator for Characters<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.at + self.width > self.filled {
            // Pieces end at multiples of their size, as mappings do, so that what is there is read whole.
            let room = PIECE - (self.next % PIECE as u64) as usize;
            let wanted = if room < self.width { self.width } else { room - room % self.width };
            self.filled = self.memory.read(self.next, &mut self.piece[..wanted]);
            self.at = 0;
            if self.filled < self.width {
                return None;
            }
            self.next = self.next.wrapping_add((self.filled - self.filled % self.width) as u64);
        }
        let bytes = &self.piece[self.at..self.at + self.width];
        self.at += self.width;
        Some(bytes.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte)))
    }
}

impl Scan<'_> {
    fn characters(&self, address: u64) -> Characters<'_> {
        Characters {
            memory: self.memory,
            width: self.width as usize,
            next: address,
            piece: [0; PIECE],
            at: 0,
            filled: 0,
        }
    }

    /// An argument as a character.
    pub fn character(&self, argument: u64) -> u32 {
        if self.width == 1 { argument as u32 & 0xff } else { argument as u32 }
    }

    /// Up to a character, at most so many. Where memory ends, one more is taken: the function goes on.
    pub fn until(&self, address: u64, most: u64, wanted: impl Fn(u32) -> bool) -> Until {
        let most = most.min(LONGEST);
        let mut characters = 0;
        let mut all = self.characters(address);
        while characters < most {
            characters += 1;
            match all.next() {
                Some(one) if wanted(one) => return Until { characters, found: true },
                Some(_) => {}
                None => break,
            }
        }
        Until { characters, found: false }
    }

    /// A text with its terminator, at most so many characters.
    pub fn text(&self, address: u64, most: u64) -> Until {
        self.until(address, most, |one| one == 0)
    }

    /// From the last occurrence of a character among so many on: how many are skipped, and the rest.
    pub fn back(&self, address: u64, count: u64, wanted: u32) -> (u64, u64) {
        let mut last = 0;
        for (index, one) in (0..count.min(LONGEST)).zip(self.characters(address)) {
            if one == wanted {
                last = index;
            }
        }
        (last, count - last)
    }

    /// Characters up to the first difference of two texts, or to their end.
    pub fn compared(&self, one: u64, other: u64, most: u64, ends: Ends) -> u64 {
        let most = most.min(LONGEST);
        let mut pairs = self.characters(one).zip(self.characters(other));
        let mut characters = 0;
        while characters < most {
            characters += 1;
            let Some((left, right)) = pairs.next() else { break };
            let ended = ends != Ends::Nowhere && (left == 0 || right == 0);
            if ended || differ(left, right, ends) {
                break;
            }
        }
        characters
    }

    /// Characters up to the first that is (or is not) in the text of a set, which is looked at too.
    pub fn span(&self, address: u64, set: u64, inside: bool) -> u64 {
        let most = self.text(set, u64::MAX).without_end();
        let set: Vec<u32> = (0..most).zip(self.characters(set)).map(|(_, one)| one).collect();
        let stops = |one: u32| one == 0 || set.contains(&one) != inside;
        self.until(address, u64::MAX, stops).characters
    }

    /// Characters up to the end of the first occurrence of a text, or all of them with their terminator.
    pub fn search(&self, address: u64, needle: u64) -> u64 {
        let whole = self.text(address, u64::MAX);
        let length = self.text(needle, u64::MAX).without_end();
        let take = |from: u64, most: u64| -> Vec<u32> {
            (0..most).zip(self.characters(from)).map(|(_, one)| one).collect()
        };
        let (text, needle) = (take(address, whole.without_end()), take(needle, length));
        if needle.is_empty() {
            return 0;
        }
        let found = text.windows(needle.len()).position(|piece| piece == needle);
        found.map_or(whole.characters, |at| (at + needle.len()) as u64)
    }
}

/// Whether a comparison stops at two characters. Letters beyond ASCII that are equal in some language only are
/// taken to differ: to stop too early asks too little of a text, to stop too late would ask too much.
fn differ(one: u32, other: u32, ends: Ends) -> bool {
    if one == other {
        return false;
    }
    let lower = |character: u32| match u8::try_from(character) {
        Ok(byte) => u32::from(byte.to_ascii_lowercase()),
        Err(_) => character,
    };
    ends != Ends::AnyCase || lower(one) != lower(other)
}
