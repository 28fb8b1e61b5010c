//! The table: one line a function.

use crate::Contract;
use crate::Deed::{self, Decides, Reads, Writes};

/// Bytes that a function touches: from which argument on, how many, and what is done to them.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Counted from 0.
    pub argument: u8,
    /// How many characters.
    pub extent: Extent,
    /// What is done to them.
    pub deeds: &'static [Deed],
}

/// How far a function goes from an argument on, in characters. Fields are numbers of arguments.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// As many as an argument says.
    Count(u8),
    /// A text with its terminator.
    Text,
    /// The same, or as many as an argument says, if that is less.
    TextAtMost(u8),
    /// As many as another text has.
    TextOf(u8),
    /// Behind the text that is there: another text, at most so many of it, and a terminator.
    Appended {
        /// The text that is appended.
        text: u8,
        /// How many of it at most.
        most: Option<u8>,
    },
    /// Up to a character, or as many as an argument says.
    UntilByte(u8, Option<u8>),
    /// Up to a character or the terminator.
    UntilByteOrEnd(u8),
    /// From the last occurrence of a character among so many on.
    FromByteBack(u8, u8),
    /// Up to the first difference from another, to the end of both, or as many as an argument says.
    Compared {
        /// The other.
        other: u8,
        /// How many at most.
        most: Option<u8>,
        /// Where else they stop.
        ends: Ends,
    },
    /// Up to the first character that is, or is not, in a set.
    SpanOf {
        /// The set.
        set: u8,
        /// Whether characters of it are skipped.
        inside: bool,
    },
    /// Up to the end of the first occurrence of another text.
    Search(u8),
}

impl Extent {
    /// The argument that says how many characters there are at most.
    pub fn count(&self) -> Option<u8> {
        match *self {
            Self::Count(count) | Self::TextAtMost(count) | Self::FromByteBack(_, count) => {
                Some(count)
            }
            Self::Appended { most, .. }
            | Self::UntilByte(_, most)
            | Self::Compared { most, .. } => most,
            Self::Text
            | Self::TextOf(_)
            | Self::UntilByteOrEnd(_)
            | Self::SpanOf { .. }
            | Self::Search(_) => None,
        }
    }
}

/// Where comparisons stop besides at a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Nowhere: it is memory.
    Nowhere,
    /// At the terminator of both.
    Text,
    /// The same; letters in either case are equal.
    AnyCase,
}

const COPIED: &[Deed] = &[Reads];
const LOOKED_AT: &[Deed] = &[Reads, Decides];
const STORED: &[Deed] = &[Writes];
/// What must be there though it is looked at only up to a difference.
const PRESENT: &[Deed] = &[Reads];
const DECIDING: &[Deed] = &[Decides];

const fn part(argument: u8, extent: Extent, deeds: &'static [Deed]) -> Part {
    Part { argument, extent, deeds }
}

const fn compared(argument: u8, most: Option<u8>, ends: Ends, deeds: &'static [Deed]) -> Part {
    part(argument, Extent::Compared { other: 1 - argument, most, ends }, deeds)
}

const COPY: &[Part] = &[part(1, Extent::Count(2), COPIED), part(0, Extent::Count(2), STORED)];
const COMPARE: &[Part] = &[
    part(0, Extent::Count(2), PRESENT),
    part(1, Extent::Count(2), PRESENT),
    compared(0, Some(2), Ends::Nowhere, DECIDING),
    compared(1, Some(2), Ends::Nowhere, DECIDING),
];
const FILL: &[Part] = &[part(0, Extent::Count(2), STORED)];
const FIND: &[Part] = &[part(0, Extent::UntilByte(1, Some(2)), LOOKED_AT)];
const LENGTH: &[Part] = &[part(0, Extent::Text, LOOKED_AT)];
const LENGTH_AT_MOST: &[Part] = &[part(0, Extent::TextAtMost(1), LOOKED_AT)];
const COPY_TEXT: &[Part] = &[part(1, Extent::Text, LOOKED_AT), part(0, Extent::TextOf(1), STORED)];
/// What is left of the room is filled with zeros.
const COPY_TEXT_PADDED: &[Part] =
    &[part(1, Extent::TextAtMost(2), LOOKED_AT), part(0, Extent::Count(2), STORED)];
const APPEND: &[Part] = &[
    part(0, Extent::Text, LOOKED_AT),
    part(1, Extent::Text, LOOKED_AT),
    part(0, Extent::Appended { text: 1, most: None }, STORED),
];
const APPEND_AT_MOST: &[Part] = &[
    part(0, Extent::Text, LOOKED_AT),
    part(1, Extent::TextAtMost(2), LOOKED_AT),
    part(0, Extent::Appended { text: 1, most: Some(2) }, STORED),
];
const COMPARE_TEXT: &[Part] =
    &[compared(0, None, Ends::Text, LOOKED_AT), compared(1, None, Ends::Text, LOOKED_AT)];
const COMPARE_TEXT_AT_MOST: &[Part] =
    &[compared(0, Some(2), Ends::Text, LOOKED_AT), compared(1, Some(2), Ends::Text, LOOKED_AT)];
const COMPARE_ANY_CASE: &[Part] =
    &[compared(0, None, Ends::AnyCase, LOOKED_AT), compared(1, None, Ends::AnyCase, LOOKED_AT)];
const COMPARE_ANY_CASE_AT_MOST: &[Part] = &[
    compared(0, Some(2), Ends::AnyCase, LOOKED_AT),
    compared(1, Some(2), Ends::AnyCase, LOOKED_AT),
];
const FIND_IN_TEXT: &[Part] = &[part(0, Extent::UntilByteOrEnd(1), LOOKED_AT)];
const FIND_LAST: &[Part] = LENGTH;
const FIND_ANYWHERE: &[Part] = &[part(0, Extent::UntilByte(1, None), LOOKED_AT)];
const FIND_BACKWARDS: &[Part] = &[part(0, Extent::FromByteBack(1, 2), LOOKED_AT)];
const SPAN: &[Part] = &[
    part(1, Extent::Text, LOOKED_AT),
    part(0, Extent::SpanOf { set: 1, inside: true }, LOOKED_AT),
];
const SPAN_OUTSIDE: &[Part] = &[
    part(1, Extent::Text, LOOKED_AT),
    part(0, Extent::SpanOf { set: 1, inside: false }, LOOKED_AT),
];
const SEARCH: &[Part] = &[part(1, Extent::Text, LOOKED_AT), part(0, Extent::Search(1), LOOKED_AT)];

const fn bytes(name: &'static str, parts: &'static [Part]) -> Contract {
    Contract { name, width: 1, parts }
}

const fn wide(name: &'static str, parts: &'static [Part]) -> Contract {
    Contract { name, width: 4, parts }
}

/// All contracts, by name. The fortified forms have the size of the room as their last argument.
#[must_use]
pub fn all() -> &'static [Contract] {
    &ALL
}

static ALL: [Contract; 61] = [
    bytes("__memcmpeq", COMPARE),
    bytes("__memcpy_chk", COPY),
    bytes("__memmove_chk", COPY),
    bytes("__mempcpy", COPY),
    bytes("__mempcpy_chk", COPY),
    bytes("__memset_chk", FILL),
    bytes("__rawmemchr", FIND_ANYWHERE),
    bytes("__stpcpy", COPY_TEXT),
    bytes("__stpncpy", COPY_TEXT_PADDED),
    bytes("__strcasecmp", COMPARE_ANY_CASE),
    bytes("__strcasecmp_l", COMPARE_ANY_CASE),
    bytes("__strncasecmp_l", COMPARE_ANY_CASE_AT_MOST),
    wide("__wmemset_chk", FILL),
    bytes("bcmp", COMPARE),
    bytes("index", FIND_IN_TEXT),
    bytes("memchr", FIND),
    bytes("memcmp", COMPARE),
    bytes("memcpy", COPY),
    bytes("memmove", COPY),
    bytes("mempcpy", COPY),
    bytes("memrchr", FIND_BACKWARDS),
    bytes("memset", FILL),
    bytes("rawmemchr", FIND_ANYWHERE),
    bytes("rindex", FIND_LAST),
    bytes("stpcpy", COPY_TEXT),
    bytes("stpncpy", COPY_TEXT_PADDED),
    bytes("strcasecmp", COMPARE_ANY_CASE),
    bytes("strcasecmp_l", COMPARE_ANY_CASE),
    bytes("strcat", APPEND),
    bytes("strchr", FIND_IN_TEXT),
    bytes("strchrnul", FIND_IN_TEXT),
    bytes("strcmp", COMPARE_TEXT),
    bytes("strcpy", COPY_TEXT),
    bytes("strcspn", SPAN_OUTSIDE),
    bytes("strlen", LENGTH),
    bytes("strncasecmp", COMPARE_ANY_CASE_AT_MOST),
    bytes("strncasecmp_l", COMPARE_ANY_CASE_AT_MOST),
    bytes("strncat", APPEND_AT_MOST),
    bytes("strncmp", COMPARE_TEXT_AT_MOST),
    bytes("strncpy", COPY_TEXT_PADDED),
    bytes("strnlen", LENGTH_AT_MOST),
    bytes("strpbrk", SPAN_OUTSIDE),
    bytes("strrchr", FIND_LAST),
    bytes("strspn", SPAN),
    bytes("strstr", SEARCH),
    wide("wcscat", APPEND),
    wide("wcschr", FIND_IN_TEXT),
    wide("wcscmp", COMPARE_TEXT),
    wide("wcscpy", COPY_TEXT),
    wide("wcslen", LENGTH),
    wide("wcsncat", APPEND_AT_MOST),
    wide("wcsncmp", COMPARE_TEXT_AT_MOST),
    wide("wcsncpy", COPY_TEXT_PADDED),
    wide("wcsnlen", LENGTH_AT_MOST),
    wide("wcsrchr", FIND_LAST),
    wide("wmemchr", FIND),
    wide("wmemcmp", COMPARE),
    wide("wmemcpy", COPY),
    wide("wmemmove", COPY),
    wide("wmempcpy", COPY),
    wide("wmemset", FILL),
];
