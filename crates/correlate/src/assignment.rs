//! Follows assignments: what they write, the constant if it is one, and whether they set or replace a
//! struct as a whole.

use crate::access::{Argument, How};
use crate::collect::{Walker, called, hash_of};
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
        let chain = std::mem::take(&mut self.chain);
        let operator = node.child_by_field_name("operator").map_or("", |it| text(it, self.source));
        let plain = operator == "=";
        let before = self.accesses.len();
        let of = self.expression(left, if plain { Mode::Write } else { Mode::Update });
        self.chain = chain;
        if matches!(operator, "|=" | "&=" | "^=")
            && let Some(written) = self.accesses[before..].iter_mut().next_back()
        {
            written.is_bits = true;
        }
        if plain {
            self.note_result_of(right, left, of);
            self.note_whole_assignment(left, right, of);
            let local = self.named_local(left);
            if let Some(local) = local {
                self.note_source(local, right);
            }
            let is_restored = self.is_restored(left, right);
            let value = self.constant(right);
            let is_given =
                right.kind() == "identifier" && self.parameters.contains(&self.object(right));
            if let Some(written) = self.accesses[before..].iter_mut().next_back() {
                (written.value, written.is_given) = (value, is_given);
                written.is_restored = is_restored;
            }
        }
        of
    }

    /// The local that an expression names.
    fn named_local(&self, node: Node) -> Option<usize> {
        let name = self.names.find(text(node, self.source)).filter(|_| node.kind() == "identifier");
        name.and_then(|name| self.visible.get(&name).copied())
    }

    /// Whether a local gives back to `left` what it took from there.
    fn is_restored(&self, left: Node, right: Node) -> bool {
        let local = self.named_local(right).map(|it| self.locals[it].taken_from);
        local == Some(hash_of(&self.source[left.byte_range()]))
    }

    /// The call on the right may not be the last one if the left side makes calls, too; then its name
    /// differs, and nothing is noted.
    fn note_result_of(&mut self, right: Node, left: Node, of: Type) {
        let base = self.object(left);
        self.note_result(right, Argument { base, of });
    }

    fn note_whole_assignment(&mut self, left: Node, right: Node, of: Type) {
        let whole = match left.kind() {
            "pointer_expression" => true,
            "identifier" => self.local_root(left).is_some(),
            "field_expression" => self.is_struct_member(left),
            _ => false,
        };
        if self.is_zeroed_allocation(right) {
            self.whole(of, How::Zeroed, left);
        } else if whole && right.kind() != "compound_literal_expression" {
            self.whole(of, How::Assigned, left);
        }
    }

    /// Whether a member is a struct itself, not a pointer to one.
    fn is_struct_member(&mut self, node: Node) -> bool {
        let Some((of, _, field)) = self.base_of(node, Mode::Silent) else { return false };
        let name = self.names.find(text(field, self.source));
        let found = name.and_then(|name| self.view.field(of, name));
        found.is_some_and(|(_, typed)| typed.by_value && !self.view.is_pointer(typed))
    }

    /// Whether the value is a fresh object with every byte zero.
    pub(crate) fn is_zeroed_allocation(&self, value: Node) -> bool {
        let name = called(value).and_then(|call| call.child_by_field_name("function"));
        name.is_some_and(|name| self.library.is_zeroed(text(name, self.source)))
    }

    /// The constant that an expression is: a number, `NULL`, or a name in capitals.
    pub(crate) fn constant(&self, node: Node) -> Option<Name> {
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
