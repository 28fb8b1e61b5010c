//! The parser driver: tree-sitter with a bound on the work that one file may cause.
//!
//! tree-sitter was chosen by measuring (docs/internals/correlate.md): it never refuses a file,
//! needs no headers, and reads 11 MB/s a core. Its one hazard is text that is not C at all, where
//! error recovery can become slow; the bound turns that into a file that is passed over.

use crate::sources::Language;
use std::cell::RefCell;
use tree_sitter::{Node, ParseOptions, Parser, Tree};

/// Parser callbacks allowed for each KiB of text. Ordinary code takes about one for each 100
/// operations, some ten a KiB. Each can cost more the more errors there are, so the bound is tight.
const CALLBACKS_PER_KIB: usize = 60;

thread_local! {
    static PARSERS: RefCell<[Option<Parser>; 2]> = const { RefCell::new([None, None]) };
}

/// Parses prepared text; none if it exceeds its bound of work.
pub fn parse(text: &[u8], language: Language) -> Option<Tree> {
    PARSERS.with_borrow_mut(|parsers| {
        let parser = parsers[language as usize].get_or_insert_with(|| new_parser(language));
        let mut left = (text.len() / 1024 + 16) * CALLBACKS_PER_KIB;
        let mut bound = |_: &tree_sitter::ParseState| {
            left = left.saturating_sub(1);
            left == 0
        };
        let options = ParseOptions::new().progress_callback(&mut bound);
        let mut input = |offset: usize, _| text.get(offset..).unwrap_or_default();
        let tree = parser.parse_with_options(&mut input, None, Some(options));
        if tree.is_none() {
            parser.reset();
        }
        tree
    })
}

fn new_parser(language: Language) -> Parser {
    let grammar = match language {
        Language::C => tree_sitter_c::LANGUAGE,
        Language::Cpp => tree_sitter_cpp::LANGUAGE,
    };
    let mut parser = Parser::new();
    parser.set_language(&grammar.into()).expect("the grammar is of this library's version");
    parser
}

/// The text of a node; names that are not UTF-8 read as empty.
pub fn text<'t>(node: Node, source: &'t [u8]) -> &'t str {
    node.utf8_text(source).unwrap_or("")
}

/// Line of a node, from 1.
pub fn line(node: Node) -> u32 {
    u32::try_from(node.start_position().row).map_or(u32::MAX, |row| row + 1)
}
