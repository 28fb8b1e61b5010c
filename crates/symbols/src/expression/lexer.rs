//! Splits the text of an expression into tokens.

use super::SyntaxError;

/// One token and where it starts.
#[derive(Clone, PartialEq, Debug)]
pub struct Token {
    /// Where it starts, in bytes.
    pub at: usize,
    /// What it is.
    pub kind: TokenKind,
}

/// What a token is.
#[derive(Clone, PartialEq, Debug)]
pub enum TokenKind {
    /// A name, without `::`.
    Word(String),
    /// A whole number.
    Number(u64),
    /// A number with a point.
    Float(f64),
    /// `$name`, without the `$`.
    Register(String),
    /// An operator or a bracket.
    Sign(&'static str),
}

/// Longer signs first, so that `->` is not taken for `-`.
const SIGNS: [&str; 34] = [
    "->", "::", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "(", ")", "[", "]", "{", "}", ".",
    ",", "*", "&", "-", "+", "/", "%", "<", ">", "!", "~", "^", "|", "#", "@", "?", ";",
];

/// The tokens of `text`.
pub fn tokens(text: &str) -> Result<Vec<Token>, SyntaxError> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let after_dot = tokens.last().is_some_and(|token| token.kind == TokenKind::Sign("."));
        let (length, kind) = if is_word(first) && !first.is_ascii_digit() {
            let length = word_length(rest);
            (length, TokenKind::Word(rest[..length].into()))
        } else if first.is_ascii_digit() && after_dot {
            // The field of a tuple: `t.0.1` holds no fraction.
            let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            (length, TokenKind::Word(rest[..length].into()))
        } else if first.is_ascii_digit() {
            number(rest, at)?
        } else if first == '$' {
            let length = word_length(&rest[1..]);
            (length + 1, TokenKind::Register(rest[1..=length].into()))
        } else if first == '\'' {
            character(rest, at)?
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (sign.len(), TokenKind::Sign(sign))
        } else {
            let message = format!("'{first}' has no meaning in a value");
            return Err(SyntaxError { at, message });
        };
        tokens.push(Token { at, kind });
        at += length;
    }
    Ok(tokens)
}

fn is_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

fn word_length(text: &str) -> usize {
    text.find(|sign| !is_word(sign)).unwrap_or(text.len())
}

fn number(text: &str, at: usize) -> Result<(usize, TokenKind), SyntaxError> {
    let end = text
        .char_indices()
        .find(|(index, sign)| {
            let exponent =
                matches!(text[..*index].chars().last(), Some('e' | 'E')) && !text.starts_with("0x");
            !(is_word(*sign) || *sign == '.' || (exponent && matches!(sign, '+' | '-')))
        })
        .map_or(text.len(), |(index, _)| index);
    let written = &text[..end];
    let digits = written.replace('_', "");
    let parsed = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex.trim_end_matches(['u', 'U', 'l', 'L']), 16).ok(),
        None => digits.trim_end_matches(['u', 'U', 'l', 'L']).parse().ok(),
    };
    if let Some(number) = parsed {
        return Ok((end, TokenKind::Number(number)));
    }
    let float = digits.parse().ok().filter(|number: &f64| number.is_finite());
    match float.filter(|_| !digits.starts_with("0x") && digits.contains(['.', 'e', 'E'])) {
        Some(number) => Ok((end, TokenKind::Float(number))),
        None => Err(SyntaxError { at, message: format!("'{written}' is not a number of 64 bits") }),
    }
}

fn character(text: &str, at: usize) -> Result<(usize, TokenKind), SyntaxError> {
    let mut signs = text.char_indices().skip(1);
    let plain = match signs.next() {
        Some((_, '\\')) => signs.next().and_then(|(_, escape)| match escape {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            '0' => Some('\0'),
            '\\' | '\'' | '"' => Some(escape),
            _ => None,
        }),
        Some((_, plain)) if plain != '\'' => Some(plain),
        _ => None,
    };
    match (plain, signs.next()) {
        (Some(plain), Some((end, '\''))) => {
            Ok((end + 1, TokenKind::Number(u64::from(u32::from(plain)))))
        }
        _ => Err(SyntaxError { at, message: "a character is written 'x' or '\\n'".into() }),
    }
}
