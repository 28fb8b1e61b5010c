//! The names that a function declares: parameters, locals, loop variables, and when they go out of
//! scope.

use crate::access::{Argument, How, Origin, Whole};
use crate::collect::{Holder, Object, Walker, called, hash_of, object_hash};
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
    /// Hash of its name, as objects have it.
    pub object: u32,
    /// What it was set to.
    pub source: Source,
    /// Hash of the expression that its value was taken from.
    pub taken_from: u64,
}

/// Where what a local holds or points to comes from; both may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The function makes it.
    pub is_new: bool,
    /// It was there before.
    pub existed: bool,
}

impl Source {
    pub(crate) const NEW: Self = Self { is_new: true, existed: false };
    pub(crate) const EXISTED: Self = Self { is_new: false, existed: true };
}

impl Local {
    /// The origin of the object that is reached through this local.
    pub fn origin(&self) -> Origin {
        match self.source {
            Source { existed: true, .. } => Origin::Existing,
            Source { is_new: true, .. } => Origin::New(self.object),
            _ => Origin::Unknown,
        }
    }
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
                    self.declare_typed(name, found.typed(of), Source::EXISTED);
                    let object = self.object(found.name);
                    self.parameters.push(object);
                }
                None => {
                    self.parameters.push(0);
                    if let TypeName::Named(name) = of
                        && let Some((base, name)) = self.view.hidden_parameter(name)
                    {
                        let typed = Typed { base, ..Typed::UNKNOWN };
                        self.declare_typed(name, typed, Source::EXISTED);
                    }
                }
            }
        }
    }

    pub(crate) fn declare_typed(&mut self, name: Name, typed: Typed, source: Source) {
        let of = self.view.resolve(typed.base);
        let by_value = typed.by_value && self.view.holds_value(typed);
        self.declare(name, of, by_value, source);
    }

    pub(crate) fn declare(&mut self, name: Name, of: Type, by_value: bool, source: Source) {
        let object = object_hash(self.names.text(name).as_bytes());
        let local = Local { of, by_value, is_used: false, object, source, taken_from: 0 };
        self.locals.push(local);
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
                Type::Unknown => self.declare(name, of, false, Source::EXISTED),
                known => self.declare(name, known, false, Source::EXISTED),
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
            let typed = found.typed(base);
            let of = self.view.resolve(base);
            let by_value = typed.by_value && self.view.holds_value(typed);
            let name = self.names.intern(text(found.name, self.source));
            // What an initial value does to the object is done to this local.
            let source = match (is_static, by_value) {
                (true, _) => Source::EXISTED,
                (false, true) => Source::NEW,
                (false, false) => Source::default(),
            };
            self.declare(name, of, by_value, source);
            let local = self.locals.len() - 1;
            self.locals[local].is_used = is_static;
            if let Some(value) = found.value {
                self.note_source(local, value);
                let given = self.initial_value(value, found.name, of, by_value);
                if of == Type::Unknown {
                    self.locals[local].of = given;
                }
            }
        }
    }

    /// Notes what a local is set to.
    pub(crate) fn note_source(&mut self, local: usize, value: Node) {
        let source = self.source_of(value);
        if !self.locals[local].by_value && called(value).is_none() {
            self.aliases.push((self.locals[local].object, self.object(value)));
        }
        let taken_from = hash_of(&self.source[value.byte_range()]);
        let local = &mut self.locals[local];
        local.taken_from = taken_from;
        if !local.by_value {
            local.source.is_new |= source.is_new;
            local.source.existed |= source.existed;
        }
    }

    /// Where the object comes from that a pointer with this value points to.
    fn source_of(&self, value: Node) -> Source {
        if let Some(call) = called(value) {
            let name = call.child_by_field_name("function").map(|it| text(it, self.source));
            return if name.is_some_and(makes) { Source::NEW } else { Source::EXISTED };
        }
        match value.kind() {
            "null" | "number_literal" | "initializer_list" => Source::default(),
            "new_expression" => Source::NEW,
            "cast_expression" => {
                let inner = value.child_by_field_name("value");
                inner.map_or(Source::EXISTED, |it| self.source_of(it))
            }
            "identifier" if text(value, self.source) == "NULL" => Source::default(),
            "pointer_expression" => {
                let inner = value.child_by_field_name("argument");
                match inner.map(|it| self.holder(it, 0)) {
                    Some(Holder::Local(local)) => self.locals[local].source,
                    _ => Source::EXISTED,
                }
            }
            _ => Source::EXISTED,
        }
    }

    fn initial_value(&mut self, value: Node, name: Node, of: Type, by_value: bool) -> Type {
        if value.kind() == "initializer_list" {
            if by_value {
                let root = self.local_root(name);
                let holder = root.map_or(Holder::Elsewhere, Holder::Local);
                let base = self.object(name);
                self.literal(value, of, Object { base, root, holder, within: None });
            } else {
                self.elements(value, of);
            }
            return of;
        }
        if self.is_zeroed_allocation(value) {
            self.whole(of, How::Zeroed, name);
        }
        let given = self.expression(value, Mode::Read);
        let of = if of == Type::Unknown { given } else { of };
        self.note_result(value, Argument { base: self.object(name), of });
        if by_value {
            self.whole(of, How::Assigned, name);
        }
        given
    }

    /// Follows the initial values of an array: a list in it is the literal of an element.
    fn elements(&mut self, list: Node, of: Type) {
        let mut cursor = list.walk();
        for element in list.named_children(&mut cursor) {
            let value = match element.kind() {
                "initializer_pair" => element.child_by_field_name("value"),
                _ => Some(element),
            };
            match value {
                Some(value) if value.kind() == "initializer_list" => {
                    let base = self.object(value);
                    let object = Object { base, holder: Holder::Fresh, ..Object::ELSEWHERE };
                    self.literal(value, of, object);
                }
                _ => self.visit(element),
            }
        }
    }

    /// Follows a structure literal: the members that it names are written, the others become zero.
    pub(crate) fn literal(&mut self, list: Node, of: Type, object: Object) {
        let mut cursor = list.walk();
        let mut is_named = false;
        let mut members = 0;
        for member in list.named_children(&mut cursor).filter(|it| it.kind() != "comment") {
            members += 1;
            if member.kind() == "initializer_pair" {
                is_named = true;
                self.literal_member(member, of, object);
            } else {
                self.visit(member);
            }
        }
        // `{0}` and `{}` zero it; a list without names sets the fields in their order.
        let how = if is_named || members < 2 { How::Zeroed } else { How::Assigned };
        if matches!(of, Type::Struct(_) | Type::Opaque(_)) {
            self.wholes.push(Whole { of, how, base: object.base });
        }
    }

    fn literal_member(&mut self, pair: Node, of: Type, object: Object) {
        let mut cursor = pair.walk();
        let designators: Vec<_> = pair.children_by_field_name("designator", &mut cursor).collect();
        let value = pair.child_by_field_name("value");
        let [.., last] = &designators[..] else { return };
        let mut at = of;
        for designator in &designators[..designators.len() - 1] {
            at = self.designated(*designator, at, Mode::Part, object);
        }
        match value.filter(|it| it.kind() == "initializer_list") {
            Some(list) => {
                let inner = self.designated(*last, at, Mode::Part, object);
                let path = self.object(pair);
                self.literal(list, inner, Object { base: path, within: None, ..object });
            }
            None => {
                if let Some(value) = value {
                    self.expression(value, Mode::Read);
                }
                let before = self.accesses.len();
                self.designated(*last, at, Mode::Write, object);
                if let Some(constant) = value.and_then(|it| self.constant(it))
                    && let Some(written) = self.accesses[before..].last_mut()
                {
                    written.value = Some(constant);
                }
            }
        }
    }

    /// The member of a literal that a designator names; an index stays in the same array.
    fn designated(&mut self, designator: Node, of: Type, mode: Mode, object: Object) -> Type {
        match designator.named_child(0) {
            Some(field) if designator.kind() == "field_designator" => {
                let name = self.names.intern(text(field, self.source));
                self.field(of, name, mode, field, object)
            }
            Some(index) => {
                self.expression(index, Mode::Read);
                of
            }
            None => of,
        }
    }
}

/// Whether a function makes a new object, by its name.
fn makes(name: &str) -> bool {
    const WORDS: [&str; 6] = ["new", "create", "make", "dup", "clone", "copy"];
    let name = name.rsplit(['>', '.', ':']).next().unwrap_or(name);
    let is_allocator = name.to_ascii_lowercase().contains("alloc") && !name.contains("realloc");
    // Some containers hand out the next element of their memory.
    is_allocator || crate::library::has_word(name, &WORDS) || name.ends_with("array_push")
}
