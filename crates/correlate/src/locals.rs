//! The names that a function declares: parameters, locals, loop variables, and when they go out of
//! scope.

use crate::collect::Walker;
use crate::expression::Mode;
use crate::names::Name;
use crate::parse::text;
use crate::syntax::{TypeName, Typed, declarators, declared, has_word, type_name};
use crate::types::Type;
use tree_sitter::Node;

/// A name declared inside a function.
#[derive(Clone, Copy, Debug)]
pub struct Local {
    /// The struct at the bottom of its type.
    pub of: Type,
    /// Whether it is such a struct itself.
    pub by_value: bool,
    /// Whether anything but its fields was ever used, or a field read.
    pub is_used: bool,
}

impl Walker<'_> {
    pub(crate) fn parameters(&mut self, list: Node) {
        let mut cursor = list.walk();
        for parameter in list.named_children(&mut cursor) {
            let Some(specifier) = parameter.child_by_field_name("type") else { continue };
            let of = type_name(specifier, self.source, self.names, None);
            match parameter.child_by_field_name("declarator").and_then(declared) {
                Some(found) => {
                    let name = self.names.intern(text(found.name, self.source));
                    self.declare_typed(name, Typed { base: of, by_value: found.by_value });
                }
                None => {
                    if let TypeName::Named(name) = of
                        && let Some((base, name)) = self.view.hidden_parameter(name)
                    {
                        self.declare_typed(name, Typed { base, by_value: false });
                    }
                }
            }
        }
    }

    pub(crate) fn declare_typed(&mut self, name: Name, typed: Typed) {
        let of = self.view.resolve(typed.base);
        let by_value = typed.by_value && self.view.holds_value(typed);
        self.declare(name, of, by_value);
    }

    pub(crate) fn declare(&mut self, name: Name, of: Type, by_value: bool) {
        self.locals.push(Local { of, by_value, is_used: false });
        let before = self.visible.insert(name, self.locals.len() - 1);
        self.shadowed.push((name, before));
    }

    pub(crate) fn leave_block(&mut self, mark: usize) {
        while self.shadowed.len() > mark {
            match self.shadowed.pop() {
                Some((name, Some(before))) => self.visible.insert(name, before),
                Some((name, None)) => self.visible.remove(&name),
                None => None,
            };
        }
    }

    pub(crate) fn range_loop(&mut self, node: Node) {
        let right = node.child_by_field_name("right");
        let of = right.map_or(Type::Unknown, |right| self.expression(right, Mode::Read));
        let base = node
            .child_by_field_name("type")
            .map_or(TypeName::Unknown, |it| type_name(it, self.source, self.names, None));
        if let Some(found) = node.child_by_field_name("declarator").and_then(declared) {
            let name = self.names.intern(text(found.name, self.source));
            match self.view.resolve(base) {
                Type::Unknown => self.declare(name, of, false),
                known => self.declare(name, known, false),
            }
        }
        if let Some(body) = node.child_by_field_name("body") {
            self.visit(body);
        }
    }

    pub(crate) fn local_declaration(&mut self, node: Node) {
        let base = node
            .child_by_field_name("type")
            .map_or(TypeName::Unknown, |it| type_name(it, self.source, self.names, None));
        let is_static = has_word(node, self.source, "static");
        for declarator in declarators(node) {
            let Some(found) = declared(declarator) else { continue };
            if found.function.is_some() && found.value.is_none() {
                continue;
            }
            let typed = Typed { base, by_value: found.by_value };
            let mut of = self.view.resolve(base);
            let by_value = typed.by_value && self.view.holds_value(typed);
            if let Some(value) = found.value {
                let given = self.initial_value(value, of, by_value);
                if of == Type::Unknown {
                    of = given;
                }
            }
            let name = self.names.intern(text(found.name, self.source));
            self.declare(name, of, by_value);
            if is_static && let Some(local) = self.locals.last_mut() {
                local.is_used = true;
            }
        }
    }

    fn initial_value(&mut self, value: Node, of: Type, by_value: bool) -> Type {
        if value.kind() == "initializer_list" {
            if by_value {
                self.whole(of);
            }
            self.visit_children(value);
            return of;
        }
        if self.is_zeroed_allocation(value) {
            self.whole(of);
        }
        let given = self.expression(value, Mode::Read);
        if by_value {
            self.whole(of);
        }
        given
    }
}
