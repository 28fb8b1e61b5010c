//! Follows expressions: which variables they access and how, and which struct they lead to.

use crate::access::{Kind, Owner};
use crate::collect::{Chain, Holder, MOST_NESTING, NewAccess, Object, Walker, object_hash};
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
    /// Something that it leads to is replaced: an element of an array, or what a pointer points to.
    WriteThrough,
    /// The same, used and replaced.
    UpdateThrough,
    /// Its address is taken.
    Address,
    /// It is only walked through on the way to a part of it (`a.b` of `a.b.c`).
    Part,
    /// It is never evaluated (`sizeof`); only its type is wanted.
    Silent,
}

impl Mode {
    /// How an object is accessed, given whether it is a pointer: elements belong to an array
    /// (`p->table[i] = x` changes `table`), what a pointer leads to does not belong to the pointer.
    fn kind(self, is_pointer: bool) -> Kind {
        match self {
            Self::WriteThrough | Self::UpdateThrough if is_pointer => Kind::READ,
            Self::Read => Kind::READ,
            Self::Write | Self::WriteThrough => Kind::WRITE,
            Self::Update | Self::UpdateThrough => Kind::READ | Kind::WRITE,
            Self::Address => Kind::ADDRESS,
            Self::Part | Self::Silent => Kind::NONE,
        }
    }

    /// Whether the object is accessed at all.
    fn is_access(self) -> bool {
        !matches!(self, Self::Part | Self::Silent)
    }

    /// The mode of a pointer or array whose target is accessed so.
    pub(crate) fn through(self) -> Self {
        match self {
            Self::Part => Self::Read,
            Self::Write => Self::WriteThrough,
            Self::Update => Self::UpdateThrough,
            _ => self,
        }
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
                if let Some(list) = field("value").filter(|_| mode != Mode::Silent) {
                    let base = self.object(node);
                    let object = Object { base, holder: Holder::Fresh, ..Object::ELSEWHERE };
                    self.literal(list, of, object);
                }
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
        let chain = std::mem::take(&mut self.chain);
        for name in ["index", "indices"] {
            if let Some(index) = node.child_by_field_name(name) {
                self.expression(index, mode.aside());
            }
        }
        self.chain = chain;
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
            let target = Target { owner: Owner::Struct(owner), field: name, typed };
            let base = object_hash(b"this");
            return self.add(target, mode, node, Object { base, ..Object::ELSEWHERE });
        }
        self.global(node, name, mode, 0)
    }

    fn global(&mut self, node: Node, name: Name, mode: Mode, depth: usize) -> Type {
        if let Some((private, global)) = self.view.global(name) {
            let owner = private.map_or(Owner::Global, Owner::Static);
            if global.is_constant {
                return self.view.resolve(global.typed.base);
            }
            let target = Target { owner, field: name, typed: global.typed };
            let object = Object { holder: Holder::Global, ..Object::ELSEWHERE };
            return self.add(target, mode, node, object);
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
                self.add_call(name, node, mode);
                self.view.returned(name, &mut |_, _| Type::Unknown, 0)
            }
            _ => Type::Unknown,
        }
    }

    fn field_expression(&mut self, node: Node, mode: Mode) -> Type {
        let outer = self.enter_chain();
        self.part = None;
        let base = self.base_of(node, mode);
        // Where the base is a member by value, it is the last part that was followed.
        let part = self.part.take();
        self.chain.is_step = outer.is_step;
        let of = match base {
            Some((of, argument, field)) => {
                let is_part = argument.kind() == "field_expression" && !is_arrow(node, self.source);
                self.member(of, (argument, part.filter(|_| is_part)), field, mode)
            }
            None => Type::Unknown,
        };
        self.chain = outer;
        of
    }

    /// Goes on along a chain of fields, or begins one; returns where it was before.
    pub(crate) fn enter_chain(&mut self) -> Chain {
        let outer = self.chain;
        if !outer.is_step {
            self.chains += 1;
            self.chain.number = self.chains;
        }
        self.chain.is_step = true;
        outer
    }

    fn member(
        &mut self,
        of: Type,
        (argument, within): (Node, Option<(Owner, Name)>),
        field: Node,
        mode: Mode,
    ) -> Type {
        let root = self.local_root(argument);
        if let Some(local) = root
            && mode != Mode::Write
        {
            self.locals[local].is_used = true;
        }
        // A field of a struct that the tree only names may be declared nowhere in it.
        let name = self.names.intern(text(field, self.source));
        let base = object_hash(&self.source[argument.byte_range()]);
        let holder = self.holder(argument, 0);
        self.field(of, name, mode, field, Object { base, root, holder, within })
    }

    /// Follows the base of a field expression: its type, its node and the node of the field.
    pub(crate) fn base_of<'t>(
        &mut self,
        node: Node<'t>,
        mode: Mode,
    ) -> Option<(Type, Node<'t>, Node<'t>)> {
        let argument = node.child_by_field_name("argument")?;
        let field = node.child_by_field_name("field")?;
        let arrow = is_arrow(node, self.source);
        let base_mode = match mode {
            Mode::Silent => Mode::Silent,
            _ if arrow => Mode::Read,
            _ => Mode::Part,
        };
        Some((self.expression(argument, base_mode), argument, field))
    }

    /// What leads to the object that `node` is or points to.
    pub(crate) fn holder(&self, node: Node, depth: usize) -> Holder {
        let inner = |field: &str| node.child_by_field_name(field);
        let next = match node.kind() {
            "parenthesized_expression" => node.named_child(0),
            "pointer_expression" => inner("argument"),
            "field_expression" if self.is_member(node) => inner("argument"),
            "identifier" => {
                let Some(name) = self.names.find(text(node, self.source)) else {
                    return Holder::Elsewhere;
                };
                let local = self.visible.get(&name).map(|it| Holder::Local(*it));
                let global = || self.view.global(name).map(|_| Holder::Global);
                return local.or_else(global).unwrap_or(Holder::Elsewhere);
            }
            _ => None,
        };
        match next {
            Some(next) if depth < MOST_NESTING => self.holder(next, depth + 1),
            _ => Holder::Elsewhere,
        }
    }

    /// Whether a field expression names a part of an object: `a.b`, or `a->b` where `b` is a struct.
    fn is_member(&self, node: Node) -> bool {
        let operator = node.child_by_field_name("operator");
        let is_dot = operator.is_some_and(|it| text(it, self.source) == ".");
        let field = node.child_by_field_name("field");
        let name = field.and_then(|it| self.names.find(text(it, self.source)));
        // Of namesakes any will do: a struct inside another is one in all of them.
        let holders = name.map(|it| self.view.is_always_value(it));
        is_dot || holders.unwrap_or(false)
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
        object: Object,
    ) -> Type {
        if let Some((owner, typed)) = self.view.field(of, name) {
            self.count_resolved(mode);
            let target = Target { owner: Owner::Struct(owner), field: name, typed };
            return self.add(target, mode, node, object);
        }
        // `#define s_addr un.addr`: another name for a path through the struct.
        if let Some(path) = self.view.alias(name)
            && let Some((owner, last, typed)) = self.follow(of, path.to_vec())
        {
            self.count_resolved(mode);
            return self.add(Target { owner, field: last, typed }, mode, node, object);
        }
        if let Type::Opaque(tag) = of {
            self.count_resolved(mode);
            let owner = Owner::Opaque(tag);
            let target = Target { owner, field: name, typed: Typed::UNKNOWN };
            return self.add(target, mode, node, object);
        }
        if let Some((owner, typed)) = self.view.guess(name) {
            self.resolution.guessed += u64::from(mode.is_access());
            let target = Target { owner: Owner::Struct(owner), field: name, typed };
            let before = self.accesses.len();
            let of = self.add(target, mode, node, Object { root: None, ..object });
            self.accesses[before..].iter_mut().for_each(|access| access.is_guess = true);
            return of;
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
        self.resolution.resolved += u64::from(mode.is_access());
    }

    fn count_dropped(&mut self, mode: Mode) {
        self.resolution.dropped += u64::from(mode.is_access());
    }

    /// Notes an access to a variable, and returns the struct that it leads to.
    fn add(&mut self, target: Target, mode: Mode, node: Node, object: Object) -> Type {
        let Target { owner, field, typed } = target;
        let of = self.view.resolve(typed.base);
        if mode.is_access() {
            let kind = mode.kind(self.view.is_pointer(typed));
            let step = self.chain.is_step.then_some(of);
            self.record(NewAccess { owner, field, kind, step }, node, object);
        } else if mode == Mode::Part {
            self.part = Some((owner, field));
            if !self.parts.contains(&(owner, field)) {
                self.parts.push((owner, field));
            }
        }
        of
    }
}

/// Whether a field expression follows a pointer.
fn is_arrow(node: Node, source: &[u8]) -> bool {
    node.child_by_field_name("operator").is_some_and(|it| text(it, source) == "->")
}

/// A variable as its declaration has it.
struct Target {
    owner: Owner,
    field: Name,
    typed: Typed,
}
