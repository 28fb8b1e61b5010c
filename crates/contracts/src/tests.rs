//! The oracle is a slow reading of what the standard says about each function, over a map of bytes.

use super::*;
use proptest::prelude::*;

/// Memory from an address on.
struct At(u64, Vec<u8>);

impl Memory for At {
    fn read(&self, address: u64, out: &mut [u8]) -> usize {
        let Some(from) = address.checked_sub(self.0).map(|from| from as usize) else { return 0 };
        let Some(there) = self.1.get(from..) else { return 0 };
        let count = there.len().min(out.len());
        out[..count].copy_from_slice(&there[..count]);
        count
    }
}

fn call(name: &str, arguments: &[u64], memory: &At) -> Vec<Touched> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let mut out = Vec::new();
    named(name).expect(name).touched(all, memory, &mut out);
    out
}

/// Length of what an argument's part has with a deed.
fn length(name: &str, arguments: &[u64], memory: &At, argument: u8, deed: Deed) -> Option<u64> {
    let touched = call(name, arguments, memory);
    touched.iter().find(|one| (one.argument, one.deed) == (argument, deed)).map(|one| one.length)
}

#[test]
fn the_table_is_sorted_and_names_nothing_twice() {
    assert!(all().windows(2).all(|pair| pair[0].name < pair[1].name));
    assert!(named("strlen").is_some() && named("malloc").is_none());
}

#[test]
fn copies_touch_what_their_count_says() {
    let memory = At(0x1000, Vec::new());
    let touched = call("memcpy", &[0x2000, 0x3000, 40], &memory);
    let expected = [(1, Deed::Reads, 0x3000, 40), (0, Deed::Writes, 0x2000, 40)];
    let expected = expected.map(|(argument, deed, address, length)| Touched {
        argument,
        deed,
        address,
        length,
    });
    assert_eq!(touched, expected);
    assert_eq!(call("memset", &[0x2000, 0, 0], &memory), []);
    assert_eq!(length("wmemset", &[0x2000, 0, 3], &memory, 0, Deed::Writes), Some(12));
}

#[test]
fn texts_end_with_their_terminator_or_where_memory_does() {
    let memory = At(0x1000, b"one\0two\0five!".to_vec());
    assert_eq!(length("strlen", &[0x1000], &memory, 0, Deed::Reads), Some(4));
    // The function goes on past the last byte that there is.
    assert_eq!(length("strlen", &[0x1008], &memory, 0, Deed::Reads), Some(6));
    assert_eq!(length("strnlen", &[0x1000, 2], &memory, 0, Deed::Reads), Some(2));
    assert_eq!(length("strcpy", &[0x5000, 0x1004], &memory, 0, Deed::Writes), Some(4));
    assert_eq!(length("strncpy", &[0x5000, 0x1004, 9], &memory, 0, Deed::Writes), Some(9));
    assert_eq!(length("strncpy", &[0x5000, 0x1004, 9], &memory, 1, Deed::Reads), Some(4));
    assert_eq!(length("memchr", &[0x1000, 0x6f, 9], &memory, 0, Deed::Reads), Some(1));
    assert_eq!(length("strchr", &[0x1000, 0x77], &memory, 0, Deed::Reads), Some(4));
    assert_eq!(length("strcmp", &[0x1000, 0x1004], &memory, 1, Deed::Reads), Some(1));
    assert_eq!(length("strstr", &[0x1000, 0x1000], &memory, 0, Deed::Reads), Some(3));
}

#[test]
fn memory_that_is_compared_is_there_but_decides_up_to_the_difference() {
    let memory = At(0x1000, b"abcXabcY".to_vec());
    let arguments = [0x1000, 0x1004, 4];
    assert_eq!(length("memcmp", &arguments, &memory, 0, Deed::Reads), Some(4));
    assert_eq!(length("memcmp", &[0x1000, 0x1001, 4], &memory, 0, Deed::Decides), Some(1));
}

#[test]
fn arguments_that_steer_are_pointers_and_counts() {
    let steering = |name| named(name).expect("a contract").steering();
    assert_eq!([steering("memcpy"), steering("strlen"), steering("memchr")], [0b111, 0b1, 0b101]);
    assert_eq!([steering("strcmp"), steering("strncat"), steering("memset")], [0b11, 0b111, 0b101]);
}

#[test]
fn what_is_appended_begins_behind_the_text() {
    let memory = At(0x1000, b"one\0three\0".to_vec());
    let written = |name, arguments: &[u64]| {
        let touched = call(name, arguments, &memory);
        let written = touched.iter().find(|one| one.deed == Deed::Writes).expect("it writes");
        (written.address, written.length)
    };
    assert_eq!(written("strcat", &[0x1000, 0x1004]), (0x1003, 6));
    assert_eq!(written("strncat", &[0x1000, 0x1004, 2]), (0x1003, 3));
    assert_eq!(written("strncat", &[0x1000, 0x1004, 9]), (0x1003, 6));
}

proptest! {
    /// Over random memory with few different bytes, so that texts are short and often equal.
    #[test]
    fn searches_agree_with_a_slow_reading(
        bytes in prop::collection::vec(prop::sample::select(vec![0u8, b'a', b'b', b'A']), 1..700),
        (one, other, most, wanted) in (0usize..700, 0usize..700, 0u64..300, 0u8..4),
    ) {
        let base = 0x7000_0000_0f70;
        let (one, other) = (one % bytes.len(), other % bytes.len());
        let wanted = [0, b'a', b'b', b'A'][usize::from(wanted)];
        let memory = At(base, bytes.clone());
        let [left, right] = [one, other].map(|at| base + at as u64);
        let at = |from: usize, index: u64| bytes.get(from + index as usize).copied();
        // How many are looked at: up to and with the first for which `stop` holds, or that is missing.
        let until = |most: u64, stop: &dyn Fn(u64) -> Option<bool>| {
            (0..most).find(|index| stop(*index) != Some(false)).map_or(most, |index| index + 1)
        };
        let text = |from: usize, most| until(most, &|index| at(from, index).map(|byte| byte == 0));
        let compare = |most, ends: bool| until(most, &|index| {
            let (left, right) = (at(one, index)?, at(other, index)?);
            Some(left != right || ends && left == 0)
        });
        let some = |length: u64| (length > 0).then_some(length);
        for (name, arguments, expected) in [
            ("strlen", vec![left], some(text(one, u64::MAX))),
            ("strnlen", vec![left, most], some(text(one, most))),
            ("strcmp", vec![left, right], some(compare(u64::MAX, true))),
            ("strncmp", vec![left, right, most], some(compare(most, true))),
            ("memchr", vec![left, u64::from(wanted), most],
                some(until(most, &|index| at(one, index).map(|byte| byte == wanted)))),
            ("strchr", vec![left, u64::from(wanted)],
                some(until(u64::MAX, &|index| at(one, index).map(|byte| byte == wanted || byte == 0)))),
        ] {
            prop_assert_eq!(length(name, &arguments, &memory, 0, Deed::Reads), expected, "{}", name);
        }
        prop_assert_eq!(
            length("memcmp", &[left, right, most], &memory, 0, Deed::Decides),
            some(compare(most, false))
        );
    }
}
