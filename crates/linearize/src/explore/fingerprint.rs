//! 128 bits that stand for a state, so that millions of seen states fit into memory. Two states
//! with the same fingerprint would be taken for one, which can only hide a counterexample, and
//! which among 10 million states happens with a probability of about 1 in 10^24.

use std::hash::{Hash, Hasher};

/// Two lanes of folded multiplication.
struct Lanes {
    one: u64,
    other: u64,
}

impl Lanes {
    fn mix(&mut self, word: u64) {
        self.one = fold(self.one ^ word, 0x9e37_79b9_7f4a_7c15);
        self.other = fold(self.other.rotate_left(23) ^ word ^ 0x5bd1_e995, 0xd6e8_feb8_6659_fd93);
    }
}

/// Both halves of the product, combined.
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    // The shifted factor keeps 0 from being a fixed point.
    (product as u64) ^ ((product >> 64) as u64) ^ left.rotate_left(32)
}

impl Hasher for Lanes {
    fn finish(&self) -> u64 {
        self.one
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
        self.mix(bytes.len() as u64);
    }

    fn write_u8(&mut self, value: u8) {
        self.mix(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.mix(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }

    fn write_i64(&mut self, value: i64) {
        self.mix(value as u64);
    }

    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }
}

/// The fingerprint of a state.
pub fn fingerprint(state: &impl Hash) -> u128 {
    let mut lanes = Lanes { one: 0x243f_6a88_85a3_08d3, other: 0x1319_8a2e_0370_7344 };
    state.hash(&mut lanes);
    lanes.mix(0);
    u128::from(lanes.one) << 64 | u128::from(lanes.other)
}
