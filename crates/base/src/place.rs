//! The notation of **places**: `FILE:LINE`, `FUNCTION`, `*0xADDRESS`. What code they mean, `symbols` says.

use crate::address::Address;
use std::fmt;
use std::str::FromStr;

/// A place as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceName {
    /// `FILE:LINE`
    Line {
        /// The last parts of the file's path.
        file: String,
        /// The line, from 1.
        line: u32,
    },
    /// `FUNCTION`
    Function(String),
    /// `*0xADDRESS`
    Address(Address),
}

/// What is none of the three forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAPlace(pub String);

impl fmt::Display for NotAPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "'{}' is not a place; write FILE:LINE, FUNCTION or *0xADDRESS", self.0)
    }
}

impl std::error::Error for NotAPlace {}

impl FromStr for PlaceName {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, NotAPlace> {
        let text = text.trim();
        let malformed = || NotAPlace(text.into());
        if let Some(address) = text.strip_prefix('*') {
            let address = Address::parse(address.trim()).ok_or_else(malformed)?;
            return Ok(Self::Address(address));
        }
        if let Some((file, line)) = text.rsplit_once(':')
            && !file.is_empty()
            && !file.ends_with(':')
            && line.starts_with(|sign: char| sign.is_ascii_digit())
        {
            let line = line.parse().ok().filter(|line| *line > 0).ok_or_else(malformed)?;
            return Ok(Self::Line { file: file.into(), line });
        }
        if text.is_empty() || text.ends_with(':') || text.starts_with("0x") {
            return Err(malformed());
        }
        Ok(Self::Function(text.into()))
    }
}

impl fmt::Display for PlaceName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(out, "{file}:{line}"),
            Self::Function(name) => out.write_str(name),
            Self::Address(address) => write!(out, "*{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_in_all_forms() {
        let line = |file: &str, line| PlaceName::Line { file: file.into(), line };
        let cases = [
            ("a.c:3", line("a.c", 3)),
            ("src/a.c:30", line("src/a.c", 30)),
            ("main", PlaceName::Function("main".into())),
            ("a::b", PlaceName::Function("a::b".into())),
            ("a::b<c>::d", PlaceName::Function("a::b<c>::d".into())),
            ("*0x40", PlaceName::Address(Address(0x40))),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse(), Ok(expected.clone()), "{text}");
            assert_eq!(expected.to_string(), text);
        }
        for text in ["", "a.c:0", "*40", "*0xzz", "a.c:99999999999", "a:", "0x40"] {
            let parsed: Result<PlaceName, _> = text.parse();
            assert_eq!(parsed, Err(NotAPlace(text.into())), "{text}");
        }
    }
}
