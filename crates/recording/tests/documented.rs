//! The page about the format against the golden recording: a second reader, written from
//! `docs/recording-format.md` alone, must find there what the page says.

use std::path::Path;

fn golden() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/version-1.txt");
    let text = std::fs::read_to_string(path).expect("a golden recording");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let digits: String = lines.collect();
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// CRC-32 as the page describes it, bit by bit.
fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = sum >> 1 ^ (0xEDB8_8320 & (sum & 1).wrapping_neg());
        }
    }
    u64::from(!sum)
}

#[test]
fn the_golden_recording_is_as_the_page_says() {
    let bytes = golden();
    assert_eq!(bytes[..8], [0x89, 0x57, 0x44, 0x52, 0x45, 0x43, 0x0d, 0x0a]);
    assert_eq!((number(&bytes, 8, 4), number(&bytes, 12, 4)), (0x0102_0304, 1));
    assert_eq!((number(&bytes, 16, 4), number(&bytes, 20, 4)), (0, checksum(&bytes[..20])));
    let trailer = bytes.len() - 32;
    assert_eq!(&bytes[trailer..trailer + 8], b"WDRECEND");
    let (index, length) = (number(&bytes, trailer + 8, 8), number(&bytes, trailer + 16, 8));
    assert_eq!(length, bytes.len() as u64);
    assert_eq!(number(&bytes, trailer + 24, 4), 0);
    assert_eq!(number(&bytes, trailer + 28, 4), checksum(&bytes[trailer..trailer + 28]));

    let (mut at, mut kinds, mut indexed) = (24, Vec::new(), Vec::new());
    let mut pieces = Vec::new();
    while at < trailer {
        let head = &bytes[at..at + 48];
        let (coding, stored, raw) = (number(head, 4, 4), number(head, 8, 4), number(head, 12, 4));
        let payload = &bytes[at + 48..at + 48 + stored as usize];
        assert!(if coding == 0 { raw == stored } else { coding == 1 && raw > stored });
        assert_eq!(number(head, 28, 8), at as u64);
        assert_eq!(number(head, 36, 4), checksum(payload));
        assert_eq!((number(head, 40, 4), number(head, 44, 4)), (0, checksum(&head[..44])));
        let kind = std::str::from_utf8(&head[..4]).expect("letters");
        match kind {
            "PIEC" => pieces.push(at as u64),
            "BLOB" => {
                assert_eq!(number(payload, 32, 8).div_ceil(1 << 20), pieces.len() as u64);
                assert_eq!(number(payload, 40, 8), pieces[0]);
            }
            "INDX" => assert_eq!((at as u64, payload), (index, indexed.as_slice())),
            "META" | "PROC" | "SUMM" => assert!(payload.starts_with(b"{")),
            kind => assert_eq!(kind, "LOG "),
        }
        if kind != "PIEC" {
            indexed.extend_from_slice(head);
        }
        kinds.push((kind.to_owned(), number(head, 16, 4), number(head, 20, 8)));
        at += 48 + stored as usize;
    }
    let expected = [
        ("META", 0, 0),
        ("PROC", 0, 0),
        ("LOG ", 0, 0),
        ("PROC", 1, 0),
        ("PIEC", 0, 0),
        ("BLOB", 0, 0),
        ("LOG ", 0, 300),
        ("LOG ", 1, 0),
        ("SUMM", 0, 0),
        ("INDX", 0, 0),
    ];
    assert_eq!(
        kinds,
        expected.map(|(kind, process, position)| (kind.to_owned(), process, position))
    );
}
