//! What is known of the contents of memory, from the values that instructions read and wrote.

use rustc_hash::FxHashMap;

const PAGE: u64 = 4096;

/// Bytes that are known. A page has a value and whether it is known for each.
#[derive(Clone, Default)]
pub struct Contents {
    pages: FxHashMap<u64, Box<[Option<u8>; PAGE as usize]>>,
}

impl Contents {
    /// These bytes stand at an address.
    pub fn store(&mut self, address: u64, bytes: &[u8]) {
        for (at, byte) in (address..).zip(bytes) {
            let page = self.pages.entry(at / PAGE);
            page.or_insert_with(|| Box::new([None; PAGE as usize]))[(at % PAGE) as usize] =
                Some(*byte);
        }
    }

    /// Something that nobody told stands there.
    pub fn forget(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size);
        // A wrong length may be all of the address space: the pages that there are, then, are fewer.
        if size / PAGE > self.pages.len() as u64 {
            for (page, bytes) in &mut self.pages {
                let start = page * PAGE;
                let (from, to) = (address.max(start), end.min(start + PAGE));
                if from < to {
                    bytes[(from - start) as usize..(to - start) as usize].fill(None);
                }
            }
            return;
        }
        let mut at = address;
        while at < end {
            let next = (at / PAGE + 1).saturating_mul(PAGE).min(end);
            if let Some(page) = self.pages.get_mut(&(at / PAGE)) {
                let from = (at % PAGE) as usize;
                page[from..from + (next - at) as usize].fill(None);
            }
            at = next;
        }
    }

    /// The number that some bytes are, lowest first; none unless all of them are known. Of more than
    /// eight, a digest: equal for equal contents.
    #[must_use]
    pub fn number(&self, address: u64, size: u64) -> Option<i128> {
        let mut number: u128 = 0;
        for (index, at) in (address..address.checked_add(size)?).enumerate() {
            let byte = u128::from(self.pages.get(&(at / PAGE))?[(at % PAGE) as usize]?);
            if size <= 8 {
                number |= byte << (8 * index);
            } else {
                number = (number ^ byte).wrapping_mul(0x0000_0100_0000_01b3) & (u128::MAX >> 1);
            }
        }
        Some(number as i128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_whole_is_a_number() {
        let mut contents = Contents::default();
        contents.store(4094, &[1, 2, 3, 4]);
        assert_eq!(contents.number(4094, 4), Some(0x0403_0201));
        assert_eq!(contents.number(4093, 4), None);
        contents.forget(4097, 10_000);
        assert_eq!(contents.number(4094, 4), None);
        assert_eq!(contents.number(4094, 3), Some(0x0003_0201));
        contents.forget(4095, u64::MAX);
        assert_eq!(contents.number(4094, 1), Some(1));
        assert_eq!(contents.number(4095, 1), None);
    }

    #[test]
    fn long_contents_are_compared_by_digest() {
        let mut contents = Contents::default();
        contents.store(0, &[7; 100]);
        contents.store(200, &[7; 100]);
        contents.store(400, &[8; 100]);
        assert_eq!(contents.number(0, 100), contents.number(200, 100));
        assert_ne!(contents.number(0, 100), contents.number(400, 100));
    }
}
