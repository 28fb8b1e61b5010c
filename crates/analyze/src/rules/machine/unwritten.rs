//! The bits of memory that hold nothing anyone wrote, eight for each byte, as memcheck's V bits.

use super::pages::Pages;
use super::registers::Origin;
use rustc_hash::FxHashMap;
use std::ops::Range;

const PAGE: u64 = 4096;
/// A byte of which no bit was written.
pub const NOTHING: u8 = 0xff;
/// Bytes that one instruction can load or store.
pub const WIDEST: usize = 64;

/// A page of which something was not written.
#[derive(Clone)]
enum Page {
    /// None of it was: the fresh pages of a large block take no room.
    Untouched,
    Mixed(Box<[u8; PAGE as usize]>),
}

impl Page {
    fn bytes(&mut self) -> &mut [u8; PAGE as usize] {
        if let Self::Untouched = self {
            *self = Self::Mixed(Box::new([NOTHING; PAGE as usize]));
        }
        match self {
            Self::Mixed(bytes) => bytes,
            Self::Untouched => unreachable!("it was just mixed"),
        }
    }
}

/// Bits that nobody wrote, by address.
#[derive(Clone, Default)]
pub struct Unwritten {
    pages: Pages<Page>,
    /// Where what was copied to a word was read first. Words whose own bytes nobody wrote have none.
    origins: FxHashMap<u64, Origin>,
}

/// Bytes of a word.
const WORD: u64 = 8;

/// More than this at once is taken for a wrong length.
const LONGEST_COPY: u64 = 1 << 30;

/// Goes through a range page by page: the page's number, and the range inside it.
fn pages(begin: u64, size: u64) -> impl Iterator<Item = (u64, Range<usize>)> {
    let end = begin.saturating_add(size);
    let numbers = begin / PAGE..end.div_ceil(PAGE);
    numbers.filter(move |_| size > 0).map(move |page| {
        let start = page * PAGE;
        let (from, to) = (begin.max(start) - start, (end - start).min(PAGE));
        (page, from as usize..to as usize)
    })
}

/// The range inside its page, if it is in one, as nearly all are.
fn inside(begin: u64, size: u64) -> Option<Range<usize>> {
    let from = begin % PAGE;
    (size <= PAGE - from).then(|| from as usize..(from + size) as usize)
}

/// Whether all of some bytes are zero: those of one value, without a loop.
fn is_zero(bytes: &[u8]) -> bool {
    match bytes {
        [one] => *one == 0,
        [a, b] => a | b == 0,
        [a, b, c, d] => u32::from_ne_bytes([*a, *b, *c, *d]) == 0,
        [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([*a, *b, *c, *d, *e, *f, *g, *h]) == 0,
        _ => bytes.chunks(WIDEST).all(|some| some.iter().fold(0, |all, bits| all | bits) == 0),
    }
}

impl Unwritten {
    fn mixed(&mut self, page: u64) -> &mut [u8; PAGE as usize] {
        self.pages.get_or(page, || Page::Mixed(Box::new([0; PAGE as usize]))).bytes()
    }

    /// Nothing of a range was written.
    pub fn insert(&mut self, begin: u64, size: u64) {
        self.forget_origins(begin, size);
        for (page, range) in pages(begin, size) {
            if range.len() as u64 == PAGE {
                *self.pages.get_or(page, || Page::Untouched) = Page::Untouched;
            } else {
                self.mixed(page)[range].fill(NOTHING);
            }
        }
    }

    /// All of a range was written.
    #[inline]
    pub fn remove(&mut self, begin: u64, size: u64) {
        match inside(begin, size) {
            Some(range) if size < PAGE => self.fill(begin / PAGE, range),
            _ => self.remove_many(begin, size),
        }
    }

    #[inline]
    fn fill(&mut self, page: u64, range: Range<usize>) {
        if !range.is_empty()
            && let Some(page) = self.pages.get_mut(page)
        {
            page.bytes()[range].fill(0);
        }
    }

    fn remove_many(&mut self, begin: u64, size: u64) {
        // More pages than there are need not be gone through.
        if self.is_beyond(size) {
            let end = begin.saturating_add(size);
            let whole = |page: &u64| page * PAGE >= begin && (page + 1) * PAGE <= end;
            for page in self.pages.numbers().into_iter().filter(whole) {
                self.pages.remove(page, Page::Untouched);
            }
            if !begin.is_multiple_of(PAGE) {
                self.remove(begin, PAGE - begin % PAGE);
            }
            self.remove(end - end % PAGE, end % PAGE);
            return;
        }
        for (page, range) in pages(begin, size) {
            if range.len() as u64 == PAGE {
                self.pages.remove(page, Page::Untouched);
            } else {
                self.fill(page, range);
            }
        }
    }

    /// The bits of up to [`WIDEST`] bytes.
    #[must_use]
    pub fn load(&self, begin: u64, size: u64) -> [u8; WIDEST] {
        let mut bits = [0; WIDEST];
        let mut done = 0;
        for (page, range) in pages(begin, size.min(WIDEST as u64)) {
            let to = &mut bits[done..done + range.len()];
            done += range.len();
            match self.pages.get(page) {
                None => {}
                Some(Page::Untouched) => to.fill(NOTHING),
                Some(Page::Mixed(bytes)) => to.copy_from_slice(&bytes[range]),
            }
        }
        bits
    }

    /// Where what is at an address, which nobody wrote, was read first.
    #[must_use]
    pub fn origin(&self, here: Origin) -> Origin {
        self.origins.get(&(here.address / WORD)).copied().unwrap_or(here)
    }

    fn forget_origins(&mut self, begin: u64, size: u64) {
        if self.origins.is_empty() || size == 0 {
            return;
        }
        let words = begin / WORD..=begin.saturating_add(size - 1) / WORD;
        if words.end() - words.start() > self.origins.len() as u64 {
            self.origins.retain(|word, _| !words.contains(word));
        } else {
            for word in words {
                self.origins.remove(&word);
            }
        }
    }

    /// Bytes are stored that have these bits, because of what was read elsewhere.
    pub fn store_from(&mut self, begin: u64, bits: &[u8], origin: Option<Origin>) {
        self.store(begin, bits);
        if let Some(origin) = origin.filter(|_| bits.iter().any(|bits| *bits != 0)) {
            let words = begin / WORD..=begin.saturating_add(bits.len() as u64 - 1) / WORD;
            self.origins.extend(words.map(|word| (word, origin)));
        }
    }

    /// Bytes are stored that have these bits.
    pub fn store(&mut self, begin: u64, bits: &[u8]) {
        if bits.iter().all(|bits| *bits == 0) {
            self.remove(begin, bits.len() as u64);
            return;
        }
        self.forget_origins(begin, bits.len() as u64);
        let mut rest = bits;
        for (page, range) in pages(begin, bits.len() as u64) {
            let (now, later) = rest.split_at(range.len());
            rest = later;
            self.mixed(page)[range].copy_from_slice(now);
        }
    }

    /// The first byte of a range that was not written whole.
    #[inline]
    #[must_use]
    pub fn first(&self, begin: u64, size: u64) -> Option<u64> {
        match inside(begin, size) {
            Some(range) => self.first_in(begin / PAGE, range),
            None if self.is_beyond(size) => self.first_of_known(begin, size),
            None => pages(begin, size).find_map(|(page, range)| self.first_in(page, range)),
        }
    }

    /// Whether a range has more pages than there are, so that these are fewer to go through. Lengths are the
    /// program's, and a wrong one may be all of the address space.
    fn is_beyond(&self, size: u64) -> bool {
        size / PAGE > self.pages.len() as u64
    }

    fn first_of_known(&self, begin: u64, size: u64) -> Option<u64> {
        let end = begin.saturating_add(size);
        let within = |page: &u64| (begin / PAGE..end.div_ceil(PAGE)).contains(page);
        self.pages.numbers().into_iter().filter(within).find_map(|page| {
            let start = page * PAGE;
            let (from, to) = (begin.max(start) - start, (end - start).min(PAGE));
            self.first_in(page, from as usize..to as usize)
        })
    }

    fn first_in(&self, number: u64, range: Range<usize>) -> Option<u64> {
        let from = number * PAGE + range.start as u64;
        match self.pages.get(number)? {
            Page::Untouched => (!range.is_empty()).then_some(from),
            Page::Mixed(bytes) if is_zero(&bytes[range.clone()]) => None,
            Page::Mixed(bytes) => {
                let at = bytes[range].iter().position(|bits| *bits != 0)?;
                Some(from + at as u64)
            }
        }
    }

    /// The bytes from `from` on decide about those from `to` on, as `memmove` copies.
    pub fn copy(&mut self, to: u64, from: u64, size: u64) {
        // Nothing is copied beyond the first page that is not there.
        let size = size.min(LONGEST_COPY);
        if self.first(from, size).is_none() {
            self.remove(to, size);
            return;
        }
        let step = WIDEST as u64;
        let chunks: Vec<[u8; WIDEST]> =
            (0..size).step_by(WIDEST).map(|at| self.load(from + at, step)).collect();
        for (at, bits) in (0..size).step_by(WIDEST).zip(&chunks) {
            self.store(to + at, &bits[..(size - at).min(step) as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The oracle is a map from addresses to bits.
        #[test]
        fn it_is_a_map_of_bytes(
            steps in prop::collection::vec(
                (0u8..4, 4000u64..4200, 0u64..9000, 4000u64..4200, any::<u8>()), 1..30),
        ) {
            let mut unwritten = Unwritten::default();
            let mut oracle: BTreeMap<u64, u8> = BTreeMap::new();
            for (kind, at, size, from, bits) in steps {
                match kind {
                    0 => {
                        unwritten.insert(at, size);
                        oracle.extend((at..at + size).map(|byte| (byte, NOTHING)));
                    }
                    1 => {
                        unwritten.remove(at, size);
                        oracle.retain(|byte, _| !(at..at + size).contains(byte));
                    }
                    2 => {
                        let size = size % 65;
                        unwritten.store(at, &vec![bits; size as usize]);
                        oracle.extend((at..at + size).map(|byte| (byte, bits)));
                    }
                    _ => {
                        unwritten.copy(at, from, size);
                        let there: Vec<u8> = (from..from + size)
                            .map(|byte| oracle.get(&byte).copied().unwrap_or(0))
                            .collect();
                        oracle.extend((at..).zip(there));
                    }
                }
                oracle.retain(|_, bits| *bits != 0);
                for byte in (3990..4300).chain(8100..8300) {
                    let expected = oracle.get(&byte).copied().unwrap_or(0);
                    prop_assert_eq!(unwritten.load(byte, 1)[0], expected, "byte {}", byte);
                }
                let first = oracle.range(at..at + 500).next().map(|(byte, _)| *byte);
                prop_assert_eq!(unwritten.first(at, 500), first);
                // A length that is wrong takes no longer.
                let first = oracle.range(at..).next().map(|(byte, _)| *byte);
                prop_assert_eq!(unwritten.first(at, 1 << 62), first);
                prop_assert_eq!(unwritten.first(at, u64::MAX), first);
            }
        }
    }
}
