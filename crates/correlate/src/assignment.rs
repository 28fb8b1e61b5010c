//! Follows assignments: what they write, the constant if it is one, and whether they set or replace a
//! struct as a whole.

use crate::collect::Walker;
use crate::expression::Mode;
use crate::names::Name;
use crate::parse::text;
use crate::types::Type;
use tree_sitter::Node;

impl Walker<'_> {
    pub(crate) fn assignment(&mut self, node: Node, mode: Mode) -> Type {
        let (Some(left), Some(right)) =
            (node.child_by_field_name("left"), node.child_by_field_name("right"))
        else {
            return Type::Unknown;
        };
        if mode == Mode::Silent {
            return self.expression(left, mode);
        }
        self.expression(right, Mode::Read);
        let plain =
            node.child_by_field_name("operator").is_some_and(|it| text(it, self.source) == "=");
        let before = self.accesses.len();
        let of = self.expression(left, if plain { Mode::Write } else { Mode::Update });
        if plain {
            self.note_whole_assignment(left, right, of);
            if let Some(value) = self.constant(right)
                && let Some(written) = self.accesses[before..].iter_mut().next_back()
            {
                written.value = Some(value);
            }
        }
        of
    }

    fn note_whole_assignment(&mut self, left: Node, right: Node, of: Type) {
        let whole = match left.kind() {
            "pointer_expression" => true,
            "identifier" => self.local_root(left).is_some(),
            _ => false,
        };
        if whole || self.is_zeroed_allocation(right) {
            self.whole(of);
        }
    }

    /// Whether the value is a fresh object with every byte zero.
    pub(crate) fn is_zeroed_allocation(&self, value: Node) -> bool {
        let mut at = value;
        loop {
            at = match at.kind() {
                "cast_expression" => match at.child_by_field_name("value") {
                    Some(value) => value,
                    None => return false,
                },
                "parenthesized_expression" => match at.named_child(0) {
                    Some(inner) => inner,
                    None => return false,
                },
                "call_expression" => {
                    let name = at.child_by_field_name("function");
                    let summary = name.and_then(|name| self.library.get(text(name, self.source)));
                    return summary.is_some_and(|summary| summary.zeroed);
                }
                _ => return false,
            }
        }
    }

    /// The constant that an expression is: a number, `NULL`, or a name in capitals.
    fn constant(&self, node: Node) -> Option<Name> {
        let written = text(node, self.source);
        let is_constant = match node.kind() {
            "number_literal" | "null" | "true" | "false" | "char_literal" => true,
            "identifier" => {
                written.len() > 1
                    && written.bytes().all(|it| !it.is_ascii_lowercase())
                    && !written.starts_with('_')
            }
            "unary_expression" => written.len() < 12,
            _ => false,
        };
        is_constant.then(|| self.names.intern(written))
    }
}
