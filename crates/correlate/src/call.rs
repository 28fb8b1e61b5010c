//! Follows calls: what a call does to its arguments, which function it links to, and which struct it
//! returns.

use crate::access::Call;
use crate::collect::{Walker, hash_of};
use crate::expression::Mode;
use crate::names::Name;
use crate::parse::{line, text};
use crate::syntax::TypeName;
use crate::types::Type;
use tree_sitter::Node;

impl Walker<'_> {
    pub(crate) fn call(&mut self, node: Node, mode: Mode) -> Type {
        let Some(function) = node.child_by_field_name("function") else { return Type::Unknown };
        let mut cursor = node.walk();
        let list = node.child_by_field_name("arguments");
        let arguments: Vec<_> =
            list.map(|list| list.named_children(&mut cursor).collect()).unwrap_or_default();
        let called = text(function, self.source);
        let summary = self.library.get(called);
        if mode == Mode::Silent || summary.is_some_and(|summary| summary.is_constant) {
            return Type::Scalar;
        }
        if function.kind() != "identifier" {
            return self.indirect_call(function, &arguments);
        }
        let types = self.arguments(called, &arguments);
        let name = self.names.intern(called);
        self.add_call(name, None, node, mode);
        if let Some(index) = summary.and_then(|summary| summary.returns_type_of) {
            return arguments.get(index).map_or(Type::Unknown, |it| self.type_argument(*it));
        }
        let this = &*self;
        this.view.returned(
            name,
            &mut |index, named| match (arguments.get(index), named) {
                (Some(argument), true) => this.type_argument(*argument),
                (Some(_), false) => types[index],
                (None, _) => Type::Unknown,
            },
            0,
        )
    }

    /// An argument that names a type.
    fn type_argument(&self, node: Node) -> Type {
        let written = text(node, self.source).trim().trim_end_matches(['*', ' ']);
        let written = written.trim_start_matches("struct ").trim();
        self.names
            .find(written)
            .map_or(Type::Unknown, |name| self.view.resolve(TypeName::Named(name)))
    }

    fn arguments(&mut self, called: &str, arguments: &[Node]) -> Vec<Type> {
        let summary = self.library.get(called);
        let mut types = Vec::with_capacity(arguments.len());
        for (index, argument) in arguments.iter().enumerate() {
            let writes = summary.is_some_and(|summary| summary.writes.contains(&index));
            let reads = summary.is_some_and(|summary| summary.reads.contains(&index));
            let mode = match (reads, writes) {
                (true, true) => Mode::Update,
                (false, true) => Mode::Write,
                _ => Mode::Read,
            };
            // A library call that goes through `&x` accesses `x`, it does not keep the address.
            let through = if reads || writes { address_of(*argument, self.source) } else { None };
            let of = self.expression(through.unwrap_or(*argument), mode);
            if (writes && (through.is_some() || is_object(*argument)))
                || self.library.frees(called, index)
            {
                self.whole(of);
            }
            types.push(of);
        }
        types
    }

    /// A call through a pointer or of a method.
    fn indirect_call(&mut self, function: Node, arguments: &[Node]) -> Type {
        if function.kind() == "field_expression"
            && let Some((of, object, member)) = self.base_of(function, Mode::Read)
        {
            let name = self.names.intern(text(member, self.source));
            let result = match of {
                // No field of that name: a method.
                Type::Struct(id) if self.view.field(of, name).is_none() => {
                    self.add_call(name, Some(self.view.struct_name(id)), function, Mode::Read);
                    self.view.returned(name, &mut |_, _| Type::Unknown, 0)
                }
                _ => {
                    let base = hash_of(&self.source[object.byte_range()]) as u32 | 1;
                    self.field(of, name, Mode::Read, member, (base, None))
                }
            };
            self.arguments("", arguments);
            return result;
        }
        if function.kind() == "qualified_identifier"
            && let Some(name) = function.child_by_field_name("name")
        {
            let name = self.names.intern(text(name, self.source));
            self.add_call(name, None, function, Mode::Read);
            self.arguments("", arguments);
            return self.view.returned(name, &mut |_, _| Type::Unknown, 0);
        }
        let of = self.expression(function, Mode::Read);
        self.arguments("", arguments);
        of
    }

    /// Notes a call, to be linked when all functions are known.
    pub(crate) fn add_call(&mut self, name: Name, class: Option<Name>, node: Node, mode: Mode) {
        if mode != Mode::Silent {
            let statement = self.statement;
            self.calls.push(Call { name, class, line: line(node), statement });
        }
    }
}

/// The object whose address an argument is.
fn address_of<'t>(node: Node<'t>, source: &[u8]) -> Option<Node<'t>> {
    match node.kind() {
        "pointer_expression" => {
            let operator = node.child_by_field_name("operator")?;
            if text(operator, source) == "&" { node.child_by_field_name("argument") } else { None }
        }
        "cast_expression" => address_of(node.child_by_field_name("value")?, source),
        "parenthesized_expression" => address_of(node.named_child(0)?, source),
        _ => None,
    }
}

/// Whether an argument is an object of its own, not a field of one.
fn is_object(node: Node) -> bool {
    match node.kind() {
        "identifier" | "call_expression" => true,
        "cast_expression" => node.child_by_field_name("value").is_some_and(is_object),
        "parenthesized_expression" => node.named_child(0).is_some_and(is_object),
        _ => false,
    }
}
