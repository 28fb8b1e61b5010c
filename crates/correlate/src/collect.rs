//! The second pass: which variables each function accesses, with all declarations known.
//!
//! `collect` finds functions and walks through their statements; `locals` keeps the names they
//! declare; `expression`, `assignment` and `call` follow what the statements are made of.

use crate::access::{
    Access, Argument, Branch, Call, Function, How, Kind, Origin, Owner, Resolution, Whole,
};
use crate::branches::Label;
use crate::expression::Mode;
use crate::library::Library;
use crate::locals::{Local, Source};
use crate::macros::MacroBody;
use crate::names::{Name, Names};
use crate::parse::{line, text};
use crate::syntax::{TypeName, declared, has_word, type_name};
use crate::types::{FileId, Type};
use crate::view::View;
use rustc_hash::FxHashMap;
use std::hash::Hasher;
use tree_sitter::Node;

/// Statements and expressions nested deeper than this are generated, or not code.
pub const MOST_NESTING: usize = 400;

/// The state of the pass over one file.
pub struct Walker<'a> {
    pub(crate) source: &'a [u8],
    pub(crate) names: &'a Names,
    pub(crate) view: &'a View<'a>,
    pub(crate) library: &'a Library,
    pub(crate) file: FileId,
    /// Functions found so far.
    pub functions: Vec<Function>,
    /// How fields were attributed so far.
    pub resolution: Resolution,
    /// The class whose method is being followed.
    pub(crate) class: Option<Name>,
    pub(crate) locals: Vec<Local>,
    pub(crate) visible: FxHashMap<Name, usize>,
    /// Names to restore when a block ends.
    pub(crate) shadowed: Vec<(Name, Option<usize>)>,
    pub(crate) statement: u32,
    pub(crate) depth: usize,
    pub(crate) accesses: Vec<Access>,
    /// For each access, the object whose field it is.
    pub(crate) objects: Vec<Object>,
    pub(crate) branches: Vec<Branch>,
    pub(crate) labels: Vec<Label>,
    /// Labels that are jumped to, and from which statement.
    pub(crate) jumps: Vec<(Name, u32)>,
    pub(crate) parts: Vec<(Owner, Name)>,
    /// The last of them that was followed.
    pub(crate) part: Option<(Owner, Name)>,
    pub(crate) aliases: Vec<(u32, u32)>,
    /// The branch that is being followed.
    pub(crate) branch: u32,
    /// Statements that choose among branches so far.
    pub(crate) choices: u32,
    pub(crate) calls: Vec<Call>,
    pub(crate) wholes: Vec<Whole>,
    pub(crate) parameters: Vec<u32>,
    pub(crate) returned: Vec<u32>,
    /// The chain of fields that is being followed.
    pub(crate) chain: Chain,
    /// Chains begun so far.
    pub(crate) chains: u32,
}

/// A place in a chain of fields such as `a->b.c`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    /// Its number; 0 outside of any.
    pub number: u32,
    /// Whether it goes on to another field from here.
    pub is_step: bool,
}

impl<'a> Walker<'a> {
    /// A walker over one file.
    pub fn new(
        source: &'a [u8],
        names: &'a Names,
        view: &'a View<'a>,
        library: &'a Library,
        file: FileId,
    ) -> Self {
        Self {
            source,
            names,
            view,
            library,
            file,
            functions: Vec::new(),
            resolution: Resolution::default(),
            class: None,
            locals: Vec::new(),
            visible: FxHashMap::default(),
            shadowed: Vec::new(),
            statement: 0,
            depth: 0,
            accesses: Vec::new(),
            objects: Vec::new(),
            branches: Vec::new(),
            labels: Vec::new(),
            jumps: Vec::new(),
            parts: Vec::new(),
            part: None,
            aliases: Vec::new(),
            branch: 0,
            choices: 0,
            calls: Vec::new(),
            wholes: Vec::new(),
            parameters: Vec::new(),
            returned: Vec::new(),
            chain: Chain::default(),
            chains: 0,
        }
    }

    /// Collects every function below `node`.
    pub fn scope(&mut self, node: Node) {
        if self.depth > MOST_NESTING {
            return;
        }
        self.depth += 1;
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "function_definition" => self.function(child),
                "struct_specifier" | "class_specifier" | "union_specifier" => {
                    self.class_body(child);
                }
                "linkage_specification"
                | "declaration_list"
                | "namespace_definition"
                | "template_declaration"
                | "ERROR"
                | "declaration"
                | "field_declaration_list"
                | "type_definition"
                | "field_declaration" => self.scope(child),
                _ => {}
            }
        }
        self.depth -= 1;
    }

    fn class_body(&mut self, node: Node) {
        let outer = self.class;
        if let TypeName::Tag(name) | TypeName::Named(name) =
            type_name(node, self.source, self.names, None)
        {
            self.class = Some(name);
        }
        self.scope(node);
        self.class = outer;
    }

    /// Follows a macro body as if it were a function.
    pub fn macro_body(&mut self, body: &MacroBody, root: Node) {
        let Some(block) =
            root.named_child(0).and_then(|function| function.child_by_field_name("body"))
        else {
            return;
        };
        for parameter in &body.parameters {
            self.declare(*parameter, Type::Unknown, false, Source::default());
            self.parameters.push(object_hash(self.names.text(*parameter).as_bytes()));
        }
        self.visit(block);
        let header = Header { name: body.name, class: None, is_static: false };
        self.finish(header, body.line, hash_of(body.source.as_bytes()));
        let function = self.functions.last_mut().expect("just finished");
        function.is_macro = true;
        for access in &mut function.accesses {
            access.line = body.line;
        }
    }

    fn function(&mut self, node: Node) {
        let Some(body) = node.child_by_field_name("body") else { return };
        let Some(found) = node.child_by_field_name("declarator").and_then(declared) else { return };
        let outer = self.class;
        let name = self.method_name(found.name);
        let is_static = has_word(node, self.source, "static");
        if let Some(list) = found.function.and_then(|it| it.child_by_field_name("parameters")) {
            self.parameters(list);
        }
        // K&R: the types of the parameters stand between the list and the body.
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "declaration" => self.local_declaration(child),
                "field_initializer_list" => self.visit(child),
                _ => {}
            }
        }
        self.visit(body);
        let header = Header { name, class: self.class, is_static };
        self.finish(header, line(node), hash_of(&self.source[body.byte_range()]));
        self.class = outer;
    }

    /// The plain name of a function; `Class::name` also enters the class.
    fn method_name(&mut self, node: Node) -> Name {
        if node.kind() == "qualified_identifier"
            && let Some(name) = node.child_by_field_name("name")
        {
            if let Some(scope) = node.child_by_field_name("scope")
                && let TypeName::Named(class) = type_name(scope, self.source, self.names, None)
            {
                self.class = Some(class);
            }
            return self.method_name(name);
        }
        self.names.intern(text(node, self.source))
    }

    fn finish(&mut self, header: Header, line: u32, hash: u64) {
        for (access, object) in self.accesses.iter_mut().zip(&self.objects) {
            access.is_dead = object.root.is_some_and(|local| {
                let local = &self.locals[local];
                local.by_value && !local.is_used
            });
            access.origin = match object.holder {
                Holder::Local(local) => self.locals[local].origin(),
                Holder::Global => Origin::Global,
                Holder::Elsewhere => Origin::Existing,
                Holder::Fresh => Origin::New(0),
            };
        }
        self.wholes.sort_by_key(|it| {
            let of = if let Type::Struct(id) = it.of { id.0 } else { u32::MAX };
            (of, it.how, it.base)
        });
        self.wholes.dedup();
        let mut accesses = std::mem::take(&mut self.accesses);
        accesses.shrink_to_fit();
        let landings = self.landings();
        self.functions.push(Function {
            name: header.name,
            class: header.class,
            file: self.file,
            line,
            is_static: header.is_static,
            is_macro: false,
            hash,
            accesses,
            calls: std::mem::take(&mut self.calls),
            wholes: std::mem::take(&mut self.wholes),
            parameters: std::mem::take(&mut self.parameters).into(),
            returned: std::mem::take(&mut self.returned).into(),
            branches: std::mem::take(&mut self.branches).into(),
            landings,
            parts: std::mem::take(&mut self.parts).into(),
            aliases: std::mem::take(&mut self.aliases).into(),
        });
        self.chains = 0;
        (self.branch, self.choices) = (0, 0);
        self.objects.clear();
        self.locals.clear();
        self.visible.clear();
        self.shadowed.clear();
        self.statement = 0;
    }

    /// Follows a statement, or whatever else stands where a statement may.
    pub(crate) fn visit(&mut self, node: Node) {
        if self.depth > MOST_NESTING {
            return;
        }
        self.depth += 1;
        match node.kind() {
            "compound_statement" => {
                let mark = self.shadowed.len();
                self.visit_children(node);
                self.leave_block(mark);
            }
            "declaration" => {
                self.statement += 1;
                self.local_declaration(node);
            }
            "for_statement" | "for_range_loop" => {
                self.statement += 1;
                let mark = self.shadowed.len();
                if node.kind() == "for_range_loop" {
                    self.range_loop(node);
                } else {
                    self.visit_children(node);
                }
                self.leave_block(mark);
            }
            "if_statement" => {
                self.statement += 1;
                self.condition(node);
            }
            "switch_statement" => {
                self.statement += 1;
                self.switch(node);
            }
            "expression_statement"
            | "return_statement"
            | "while_statement"
            | "do_statement"
            | "case_statement"
            | "throw_statement" => {
                self.statement += 1;
                self.visit_children(node);
                if node.kind() == "return_statement" {
                    self.note_returned(node);
                }
            }
            "goto_statement" => self.jump(node),
            "labeled_statement" => self.label(node),
            "function_definition"
            | "type_definition"
            | "struct_specifier"
            | "type_descriptor"
            | "comment"
            | "parameter_list" => {}
            kind if is_expression(kind) => {
                self.expression(node, Mode::Read);
            }
            _ => self.visit_children(node),
        }
        self.depth -= 1;
    }

    pub(crate) fn visit_children(&mut self, node: Node) {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            self.visit(child);
        }
    }

    /// Notes that a struct is set, zeroed or freed as a whole.
    pub(crate) fn whole(&mut self, of: Type, how: How, object: Node) {
        // A wrapper around `calloc` or `memset` need not know the struct.
        if matches!(of, Type::Struct(_) | Type::Opaque(_)) || how == How::Zeroed {
            let base = self.object(object);
            self.wholes.push(Whole { of, how, base });
        }
    }

    /// The hash of the expression that names an object, as accesses to its fields have it: `s` for
    /// `&s`, `p` for `*p`.
    pub(crate) fn object(&self, node: Node) -> u32 {
        let inner = match node.kind() {
            "pointer_expression" => node.child_by_field_name("argument"),
            "cast_expression" => node.child_by_field_name("value"),
            "parenthesized_expression" => node.named_child(0),
            _ => None,
        };
        match inner {
            Some(inner) => self.object(inner),
            None => object_hash(&self.source[node.byte_range()]),
        }
    }

    /// Notes which object a function returns.
    fn note_returned(&mut self, node: Node) {
        let Some(value) = node.named_child(0) else { return };
        self.note_result(value, Argument { base: Argument::RETURNED, of: Type::Unknown });
        if self.is_zeroed_allocation(value) {
            let base = Argument::RETURNED;
            self.wholes.push(Whole { of: Type::Unknown, how: How::Zeroed, base });
        }
        let object = self.object(value);
        self.returned.push(object);
    }

    /// Notes what the result of a call becomes, if `value` is one.
    pub(crate) fn note_result(&mut self, value: Node, result: Argument) {
        let Some(call) = called(value) else { return };
        let name = call.child_by_field_name("function").map(|it| text(it, self.source));
        // The calls in its arguments come before it.
        if let Some(last) = self.calls.last_mut()
            && name == Some(self.names.text(last.name))
        {
            last.result = result;
        }
    }

    /// Adds an access.
    pub(crate) fn record(&mut self, access: NewAccess, node: Node, object: Object) {
        self.accesses.push(Access {
            owner: access.owner,
            field: access.field,
            kind: access.kind,
            line: line(node),
            statement: self.statement,
            base: object.base,
            within: object.within,
            chain: self.chain.number,
            step: access.step,
            value: None,
            is_bits: false,
            is_given: false,
            is_dead: false,
            is_restored: false,
            origin: Origin::Unknown,
            branch: self.branch,
            is_guess: false,
        });
        self.objects.push(object);
    }
}

/// The part of an access that expressions decide.
pub(crate) struct NewAccess {
    pub owner: Owner,
    pub field: Name,
    pub kind: Kind,
    pub step: Option<Type>,
}

/// An object, as an access to one of its fields names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    /// Hash of the expression.
    pub base: u32,
    /// The local struct that it is part of.
    pub root: Option<usize>,
    /// What leads to it.
    pub holder: Holder,
    /// The member of another struct that it is.
    pub within: Option<(Owner, Name)>,
}

impl Object {
    /// An object that nothing is known of.
    pub(crate) const ELSEWHERE: Self =
        Self { base: 0, root: None, holder: Holder::Elsewhere, within: None };
}

/// What the way to an object begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A local that is the object, holds it or points to it.
    Local(usize),
    /// A global variable that is the object or holds it.
    Global,
    /// The expression itself makes the object.
    Fresh,
    /// Anything else.
    Elsewhere,
}

/// The call that an expression is, apart from casts and parentheses.
pub(crate) fn called(value: Node) -> Option<Node> {
    match value.kind() {
        "call_expression" => Some(value),
        "cast_expression" => called(value.child_by_field_name("value")?),
        "parenthesized_expression" => called(value.named_child(0)?),
        _ => None,
    }
}

struct Header {
    name: Name,
    class: Option<Name>,
    is_static: bool,
}

fn is_expression(kind: &str) -> bool {
    kind.ends_with("_expression")
        || matches!(kind, "identifier" | "field_identifier" | "qualified_identifier" | "this")
}

/// Hash of an expression that names an object; `a[i]` and `a[i++]` are one.
pub(crate) fn object_hash(text: &[u8]) -> u32 {
    let mut hasher = rustc_hash::FxHasher::default();
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        rest = match rest {
            [b'+', b'+', after @ ..] | [b'-', b'-', after @ ..] => after,
            _ => {
                if !first.is_ascii_whitespace() {
                    hasher.write_u8(*first);
                }
                tail
            }
        };
    }
    hasher.finish() as u32 | 1
}

/// Hash of a text without its blanks.
pub fn hash_of(text: &[u8]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    for byte in text.iter().filter(|byte| !byte.is_ascii_whitespace()) {
        hasher.write_u8(*byte);
    }
    hasher.finish()
}
