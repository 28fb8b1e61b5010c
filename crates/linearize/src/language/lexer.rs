//! The symbols of the specification language; everything else is the shared lexer.

use spec::Language;

/// How a specification is cut into tokens.
pub const LANGUAGE: Language = Language {
    symbols: &[
        "=>", "==", "!=", "<=", ">=", "&&", "||", "->", "++", "--", "+=", "-=", "≠", "≤", "≥", "<",
        ">", "=", "{", "}", "(", ")", "[", "]", ",", ";", ".", "*", "+", "-", "/", ":", "%", "!",
    ],
    hash_comments: true,
};

/// Words that cannot be names.
pub const KEYWORDS: &[&str] = &[
    "struct",
    "int",
    "init",
    "invariant",
    "malloc",
    "free",
    "READ",
    "return",
    "ID",
    "NULL",
    "if",
    "else",
    "while",
    "for",
    "switch",
    "do",
];

/// Words of other languages: they get a hint.
pub const FOREIGN: &[&str] = &["if", "else", "while", "for", "switch", "do"];
