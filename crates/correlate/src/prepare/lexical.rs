//! The lexical rules of C that are needed to find one's way through text: where strings, comments,
//! directives and parentheses end. Nothing here fails; what is never closed ends with the text.

/// Overwrites text with blanks; lines stay.
pub(super) fn blank(text: &mut [u8]) {
    for byte in text.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

pub(super) fn skip_blanks(text: &[u8], at: usize) -> usize {
    at + text[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// The end of the word at `at`; a number may hold digit separators and dots.
pub(super) fn word_end(text: &[u8], at: usize, number: bool) -> usize {
    let more = |(index, byte): (usize, &u8)| {
        is_word(*byte)
            || number
                && (*byte == b'.'
                    || *byte == b'\'' && text.get(at + index + 1).is_some_and(u8::is_ascii_digit))
    };
    at + text[at..].iter().enumerate().take_while(|(index, byte)| more((*index, byte))).count()
}

/// The end of the string or character at `at`. One that is not closed on its line ends there.
pub(super) fn quoted_end(text: &[u8], at: usize) -> usize {
    let quote = text[at];
    let mut end = at + 1;
    while let Some(&byte) = text.get(end) {
        match byte {
            b'\\' => end += 2,
            b'\n' => return end,
            _ if byte == quote => return end + 1,
            _ => end += 1,
        }
    }
    text.len()
}

/// The end of the C++ raw string whose quote is at `at`.
pub(super) fn raw_string_end(text: &[u8], at: usize) -> usize {
    let Some(open) = text[at..].iter().take(18).position(|byte| *byte == b'(') else {
        return quoted_end(text, at);
    };
    let close = [b")", &text[at + 1..at + open], b"\""].concat();
    let body = &text[at + open..];
    let found = body.windows(close.len()).position(|part| part == close);
    found.map_or(text.len(), |offset| at + open + offset + close.len())
}

/// The end of the comment at `at`.
pub(super) fn comment_end(text: &[u8], at: usize) -> usize {
    let rest = &text[at + 2..];
    let length = if text[at + 1] == b'/' {
        rest.iter().position(|byte| *byte == b'\n')
    } else {
        rest.windows(2).position(|pair| pair == b"*/").map(|offset| offset + 2)
    };
    length.map_or(text.len(), |length| at + 2 + length)
}

/// The end of the directive at `at`: the first line end that is neither escaped nor in a comment.
pub(super) fn directive_end(text: &[u8], at: usize) -> usize {
    let mut end = at;
    while let Some(&byte) = text.get(end) {
        end = match byte {
            b'\n' => return end,
            b'\\' if text.get(end + 1) == Some(&b'\r') => end + 3,
            b'\\' => end + 2,
            b'"' => quoted_end(text, end),
            b'/' if text.get(end + 1) == Some(&b'*') => comment_end(text, end),
            b'/' if text.get(end + 1) == Some(&b'/') => return comment_end(text, end),
            _ => end + 1,
        };
    }
    text.len()
}

/// The offset after the parenthesis that opens at or after `at`, if the next thing is one.
pub(super) fn after_parenthesis(text: &[u8], at: usize) -> Option<usize> {
    let open = skip_blanks(text, at);
    if text.get(open) != Some(&b'(') {
        return None;
    }
    // Bounded: an argument list longer than this is a parenthesis that is never closed.
    let text = &text[..text.len().min(open + 4096)];
    let (mut depth, mut end) = (0, open);
    while let Some(&byte) = text.get(end) {
        end = match byte {
            b'"' | b'\'' => quoted_end(text, end),
            _ => end + 1,
        };
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(end),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Balanced, and ends where a statement, declaration or initialiser ends.
pub(super) fn is_self_contained(text: &[u8]) -> bool {
    let (mut depth, mut at, mut last) = (0i32, 0, b';');
    let first_word = skip_blanks(text, 0);
    if text[first_word..].starts_with(b"else") {
        return false;
    }
    while let Some(&byte) = text.get(at) {
        at = match byte {
            b'"' | b'\'' => quoted_end(text, at),
            b'(' | b'{' | b'[' => {
                depth += 1;
                at + 1
            }
            b')' | b'}' | b']' => {
                depth -= 1;
                at + 1
            }
            _ => at + 1,
        };
        if depth < 0 {
            return false;
        }
        if !byte.is_ascii_whitespace() {
            last = byte;
        }
    }
    depth == 0 && matches!(last, b';' | b'}' | b',' | b':')
}
