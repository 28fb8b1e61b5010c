//! Follows calls: what a call does to its arguments, which function it links to, and which struct it
//! returns.

use crate::access::{Argument, Call, How};
use crate::collect::{Object, Walker, object_hash};
use crate::expression::Mode;
use crate::names::Name;
use crate::parse::{line, text};
use crate::syntax::TypeName;
use crate::types::Type;
use tree_sitter::Node;

impl Walker<'_> {
    /// A call; what stands in it is no part of the chain of fields that the call may be part of.
    pub(crate) fn call(&mut self, node: Node, mode: Mode) -> Type {
        let chain = std::mem::take(&mut self.chain);
        let of = self.call_apart(node, mode);
        self.chain = chain;
        of
    }

    fn call_apart(&mut self, node: Node, mode: Mode) -> Type {
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
        self.add_call_with(name, None, node, self.handed(&arguments, &types));
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

    /// The arguments that may be objects with fields.
    fn handed(&self, arguments: &[Node], types: &[Type]) -> Box<[Argument]> {
        let handed = arguments.iter().zip(types).map(|(node, of)| match of {
            Type::Struct(_) | Type::Opaque(_) => Argument { base: self.object(*node), of: *of },
            Type::Unknown | Type::Scalar => Argument::NONE,
        });
        handed.collect()
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
            let zeroes = summary.is_some_and(|summary| summary.zeroes.contains(&index));
            // A library call that goes through `&x` accesses `x`, it does not keep the address.
            let through = if reads || writes { address_of(*argument, self.source) } else { None };
            let mode = if through.is_some() { mode } else { mode.through() };
            let of = self.expression(through.unwrap_or(*argument), mode);
            if writes && (through.is_some() || is_object(*argument)) {
                let how = if zeroes { How::Zeroed } else { How::Assigned };
                self.whole(of, how, *argument);
            } else if self.library.frees(called, index) {
                self.whole(of, How::Freed, *argument);
            }
            types.push(of);
        }
        types
    }

    /// A call through a pointer or of a method.
    fn indirect_call(&mut self, function: Node, arguments: &[Node]) -> Type {
        if function.kind() == "field_expression"
            && let Some((of, object, member)) = self.stepped_base(function)
        {
            let name = self.names.intern(text(member, self.source));
            let result = match of {
                // No field of that name: a method.
                Type::Struct(id) if self.view.field(of, name).is_none() => {
                    let class = Some(self.view.struct_name(id));
                    self.add_call_with(name, class, function, Box::default());
                    self.view.returned(name, &mut |_, _| Type::Unknown, 0)
                }
                _ => {
                    let base = object_hash(&self.source[object.byte_range()]);
                    self.field(of, name, Mode::Read, member, Object { base, ..Object::ELSEWHERE })
                }
            };
            self.arguments("", arguments);
            return result;
        }
        if function.kind() == "qualified_identifier"
            && let Some(name) = function.child_by_field_name("name")
        {
            let name = self.names.intern(text(name, self.source));
            let types = self.arguments("", arguments);
            self.add_call_with(name, None, function, self.handed(arguments, &types));
            return self.view.returned(name, &mut |_, _| Type::Unknown, 0);
        }
        let of = self.expression(function, Mode::Read);
        self.arguments("", arguments);
        of
    }

    /// The base of a field that is called: a step on the way to it.
    fn stepped_base<'t>(&mut self, function: Node<'t>) -> Option<(Type, Node<'t>, Node<'t>)> {
        let outer = self.enter_chain();
        let base = self.base_of(function, Mode::Read);
        self.chain.is_step = outer.is_step;
        base
    }

    /// Notes a call, to be linked when all functions are known.
    pub(crate) fn add_call(&mut self, name: Name, node: Node, mode: Mode) {
        if mode != Mode::Silent {
            self.add_call_with(name, None, node, Box::default());
        }
    }

    fn add_call_with(
        &mut self,
        name: Name,
        class: Option<Name>,
        node: Node,
        arguments: Box<[Argument]>,
    ) {
        let (line, statement, result) = (line(node), self.statement, Argument::NONE);
        let branch = self.branch;
        self.calls.push(Call { name, class, line, statement, branch, arguments, result });
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
