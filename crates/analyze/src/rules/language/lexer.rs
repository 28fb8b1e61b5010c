//! The symbols and reserved words of the rule language; everything else is the shared lexer.

use spec::Language;

/// How a rule file is cut into tokens.
pub const LANGUAGE: Language = Language {
    symbols: &[
        "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "=", "(", ")", "[", "]", ",", ";", ":",
        "+", "-", "&",
    ],
    hash_comments: true,
};

/// Words that cannot be names of variables or definitions.
pub const KEYWORDS: &[&str] = &[
    "define", "detect", "exists", "forall", "in", "such", "that", "event", "NULL", "VPC",
    "FindLast",
];
