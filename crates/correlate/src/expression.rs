//! Follows expressions: which variables they access and how, and which struct they lead to.

use crate::access::{Kind, Owner};
use crate::collect::{MOST_NESTING, NewAccess, Walker, hash_of};
use crate::names::Name;
use crate::parse::text;
use crate::syntax::{TypeName, Typed, type_name};
use crate::types::Type;
use tree_sitter::Node;

/// What is done with the value of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is used.
    Read,
    /// It is replaced.
    Write,
    /// It is used and replaced, as by `+=` and `++`.
    Update,
    /// Its address is taken.
    Address,
    /// It is only walked through on the way to a part of it (`a.b` of `a.b.c`).
    Part,
    /// It is never evaluated (`sizeof`); only its type is wanted.
    Silent,
}

impl Mode {
    fn kind(self) -> Kind {
        match self {
            Self::Read => Kind::READ,
            Self::Write => Kind::WRITE,
            Self::Update => Kind::READ | Kind::WRITE,
            Self::Address => Kind::ADDRESS,
            Self::Part | Self::Silent => Kind::NONE,
        }
    }

    /// The mode of a pointer or array whose target is accessed so. Elements belong to the array:
    /// `p->table[i] = x` changes `table`.
    fn through(self) -> Self {
        if self == Self::Part { Self::Read } else { self }
    }

    /// The mode of something that is merely evaluated on the way.
    fn aside(self) -> Self {
        if self == Self::Silent { Self::Silent } else { Self::Read }
    }
}

impl Walker<'_> {
    /// Follows an expression and returns the struct at the bottom of its type.
    pub(crate) fn expression(&mut self, node: Node, mode: Mode) -> Type {
        if self.depth > MOST_NESTING {
            return Type::Unknown;
        }
        self.depth += 1;
        let of = self.expression_inside(node, mode);
        self.depth -= 1;
        of
    }

    fn expression_inside(&mut self, node: Node, mode: Mode) -> Type {
        let field = |name| node.child_by_field_name(name);
        match node.kind() {
            "identifier" | "field_identifier" => self.identifier(node, mode),
            "qualified_identifier" => match field("name") {
                Some(name) => self.expression(name, mode),
                None => Type::Unknown,
            },
            "this" => {
                self.class.map_or(Type::Unknown, |class| self.view.resolve(TypeName::Named(class)))
            }
            "field_expression" => self.field_expression(node, mode),
            "subscript_expression" => self.subscript(node, mode),
            "pointer_expression" => self.pointer(node, mode),
            "assignment_expression" => self.assignment(node, mode),
            "update_expression" => {
                let mode = if mode == Mode::Silent { mode } else { Mode::Update };
                field("argument").map_or(Type::Unknown, |it| self.expression(it, mode))
            }
            "call_expression" => self.call(node, mode),
            "cast_expression" => {
                if let Some(value) = field("value") {
                    self.expression(value, mode);
                }
                self.named_type(field("type"))
            }
            "sizeof_expression" | "alignof_expression" | "offsetof_expression" => Type::Scalar,
            "conditional_expression" => self.conditional(node, mode),
            "compound_literal_expression" => {
                let of = self.named_type(field("type"));
                self.whole(of);
                self.each_child(node, Mode::Read);
                of
            }
            "new_expression" => {
                let of = self.named_type(field("type"));
                if let Some(arguments) = field("arguments") {
                    self.visit(arguments);
                }
                of
            }
            "comma_expression" => self.last_of(node, mode),
            "parenthesized_expression" => self.last_of(node, mode),
            "binary_expression" => self.binary(node, mode),
            "compound_statement" | "lambda_expression" => {
                self.visit_body(node);
                Type::Unknown
            }
            "type_descriptor" => Type::Scalar,
            _ => {
                self.each_child(node, mode.aside());
                Type::Scalar
            }
        }
    }

    fn visit_body(&mut self, node: Node) {
        let body = node.child_by_field_name("body").unwrap_or(node);
        if body.kind() == "compound_statement" {
            self.visit(body);
        }
    }

    fn each_child(&mut self, node: Node, mode: Mode) {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "initializer_pair" => {
                    if let Some(value) = child.child_by_field_name("value") {
                        self.expression(value, mode);
                    }
                }
                "type_descriptor" => {}
                _ => {
                    self.expression(child, mode);
                }
            }
        }
    }

    fn named_type(&self, node: Option<Node>) -> Type {
        let name = node.map(|it| type_name(it, self.source, self.names, None));
        name.map_or(Type::Unknown, |name| self.view.resolve(name))
    }

    fn last_of(&mut self, node: Node, mode: Mode) -> Type {
        let mut cursor = node.walk();
        let children: Vec<_> = node.named_children(&mut cursor).collect();
        let Some((last, before)) = children.split_last() else { return Type::Unknown };
        for child in before {
            self.expression(*child, mode.aside());
        }
        self.expression(*last, mode)
    }

    fn conditional(&mut self, node: Node, mode: Mode) -> Type {
        if let Some(condition) = node.child_by_field_name("condition") {
            self.expression(condition, mode.aside());
        }
        let mut branch = |name| {
            node.child_by_field_name(name)
                .map_or(Type::Unknown, |branch| self.expression(branch, mode))
        };
        let (left, right) = (branch("consequence"), branch("alternative"));
        if matches!(left, Type::Struct(_) | Type::Opaque(_)) { left } else { right }
    }

    /// Arithmetic; the type matters only for pointers.
    fn binary(&mut self, node: Node, mode: Mode) -> Type {
        let mut side = |name| {
            node.child_by_field_name(name)
                .map_or(Type::Unknown, |side| self.expression(side, mode.aside()))
        };
        let (left, right) = (side("left"), side("right"));
        if left == Type::Scalar { right } else { left }
    }

    fn subscript(&mut self, node: Node, mode: Mode) -> Type {
        let array = node.child_by_field_name("argument");
        let of = array.map_or(Type::Unknown, |array| self.expression(array, mode.through()));
        for name in ["index", "indices"] {
            if let Some(index) = node.child_by_field_name(name) {
                self.expression(index, mode.aside());
            }
        }
        of
    }

    fn pointer(&mut self, node: Node, mode: Mode) -> Type {
        let Some(argument) = node.child_by_field_name("argument") else { return Type::Unknown };
        let takes_address =
            node.child_by_field_name("operator").is_some_and(|it| text(it, self.source) == "&");
        let mode = match mode {
            Mode::Silent => Mode::Silent,
            // `(&a->b)->c` is `a->b.c`.
            Mode::Part if takes_address => Mode::Part,
            _ if takes_address => Mode::Address,
            _ => mode.through(),
        };
        self.expression(argument, mode)
    }

    fn identifier(&mut self, node: Node, mode: Mode) -> Type {
        let Some(name) = self.names.find(text(node, self.source)) else { return Type::Unknown };
        if let Some(&index) = self.visible.get(&name) {
            let local = &mut self.locals[index];
            // Walking through to a field is not a use; what happens to the field decides.
            local.is_used |= !matches!(mode, Mode::Part | Mode::Silent);
            return local.of;
        }
        if let Some(class) = self.class
            && let of @ Type::Struct(_) = self.view.resolve(TypeName::Named(class))
            && let Some((owner, typed)) = self.view.field(of, name)
        {
            self.count_resolved(mode);
            self.add(Owner::Struct(owner), name, mode, node, hash_of(b"this") as u32 | 1, None);
            return self.view.resolve(typed.base);
        }
        self.global(node, name, mode, 0)
    }

    fn global(&mut self, node: Node, name: Name, mode: Mode, depth: usize) -> Type {
        if let Some((private, global)) = self.view.global(name) {
            let owner = private.map_or(Owner::Global, Owner::Static);
            if !global.is_constant {
                self.add(owner, name, mode, node, 0, None);
            }
            return self.view.resolve(global.typed.base);
        }
        match self.view.alias(name) {
            Some([other]) if depth < 8 && *other != name => {
                let other = *other;
                if let Some(&index) = self.visible.get(&other) {
                    return self.locals[index].of;
                }
                self.global(node, other, mode, depth + 1)
            }
            _ if self.view.is_macro(name) => {
                self.add_call(name, None, node, mode);
                self.view.returned(name, &mut |_, _| Type::Unknown, 0)
            }
            _ => Type::Unknown,
        }
    }

    fn field_expression(&mut self, node: Node, mode: Mode) -> Type {
        let Some((of, argument, field)) = self.base_of(node, mode) else { return Type::Unknown };
        let root = self.local_root(argument);
        if let Some(local) = root
            && mode != Mode::Write
        {
            self.locals[local].is_used = true;
        }
        // A field of a struct that the tree only names may be declared nowhere in it.
        let name = self.names.intern(text(field, self.source));
        let base = hash_of(&self.source[argument.byte_range()]) as u32 | 1;
        self.field(of, name, mode, field, (base, root))
    }

    /// Follows the base of a field expression: its type, its node and the node of the field.
    pub(crate) fn base_of<'t>(
        &mut self,
        node: Node<'t>,
        mode: Mode,
    ) -> Option<(Type, Node<'t>, Node<'t>)> {
        let argument = node.child_by_field_name("argument")?;
        let field = node.child_by_field_name("field")?;
        let arrow =
            node.child_by_field_name("operator").is_some_and(|it| text(it, self.source) == "->");
        let base_mode = match mode {
            Mode::Silent => Mode::Silent,
            _ if arrow => Mode::Read,
            _ => Mode::Part,
        };
        Some((self.expression(argument, base_mode), argument, field))
    }

    /// The local struct that a chain of `.` starts at.
    pub(crate) fn local_root(&self, node: Node) -> Option<usize> {
        let mut at = node;
        loop {
            at = match at.kind() {
                "field_expression" => at.child_by_field_name("argument")?,
                "parenthesized_expression" => at.named_child(0)?,
                "identifier" => break,
                _ => return None,
            }
        }
        let name = self.names.find(text(at, self.source))?;
        self.visible.get(&name).copied().filter(|local| self.locals[*local].by_value)
    }

    /// Attributes an access to the field `name` of a base of type `of`.
    pub(crate) fn field(
        &mut self,
        of: Type,
        name: Name,
        mode: Mode,
        node: Node,
        (base, root): (u32, Option<usize>),
    ) -> Type {
        if let Some((owner, typed)) = self.view.field(of, name) {
            self.count_resolved(mode);
            self.add(Owner::Struct(owner), name, mode, node, base, root);
            return self.view.resolve(typed.base);
        }
        // `#define s_addr un.addr`: another name for a path through the struct.
        if let Some(path) = self.view.alias(name)
            && let Some((owner, last, typed)) = self.follow(of, path.to_vec())
        {
            self.count_resolved(mode);
            self.add(owner, last, mode, node, base, root);
            return self.view.resolve(typed.base);
        }
        if let Type::Opaque(tag) = of {
            self.count_resolved(mode);
            self.add(Owner::Opaque(tag), name, mode, node, base, root);
            return Type::Unknown;
        }
        if let Some((owner, typed)) = self.view.guess(name) {
            self.resolution.guessed += u64::from(mode.kind() != Kind::NONE);
            self.add_guess(Owner::Struct(owner), name, mode, node, base);
            return self.view.resolve(typed.base);
        }
        self.count_dropped(mode);
        Type::Unknown
    }

    fn follow(&self, of: Type, path: Vec<Name>) -> Option<(Owner, Name, Typed)> {
        let mut at = of;
        let mut found = None;
        for name in path {
            let (owner, typed) = self.view.field(at, name)?;
            at = self.view.resolve(typed.base);
            found = Some((Owner::Struct(owner), name, typed));
        }
        found
    }

    fn count_resolved(&mut self, mode: Mode) {
        self.resolution.resolved += u64::from(mode.kind() != Kind::NONE);
    }

    fn count_dropped(&mut self, mode: Mode) {
        self.resolution.dropped += u64::from(mode.kind() != Kind::NONE);
    }

    fn add(
        &mut self,
        owner: Owner,
        field: Name,
        mode: Mode,
        node: Node,
        base: u32,
        root: Option<usize>,
    ) {
        if mode.kind() != Kind::NONE {
            let access = NewAccess { owner, field, kind: mode.kind(), base, is_guess: false };
            self.record(access, node, root);
        }
    }

    fn add_guess(&mut self, owner: Owner, field: Name, mode: Mode, node: Node, base: u32) {
        if mode.kind() != Kind::NONE {
            let access = NewAccess { owner, field, kind: mode.kind(), base, is_guess: true };
            self.record(access, node, None);
        }
    }
}
