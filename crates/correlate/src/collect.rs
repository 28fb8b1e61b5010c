//! The second pass: which variables each function accesses, with all declarations known.
//!
//! `collect` finds functions and walks through their statements; `locals` keeps the names they
//! declare; `expression`, `assignment` and `call` follow what the statements are made of.

use crate::access::{Access, Call, Function, Kind, Owner, Resolution};
use crate::expression::Mode;
use crate::library::Library;
use crate::locals::Local;
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
    /// For each access, the local whose field it is.
    pub(crate) roots: Vec<Option<usize>>,
    pub(crate) calls: Vec<Call>,
    pub(crate) wholes: Vec<Type>,
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
            roots: Vec::new(),
            calls: Vec::new(),
            wholes: Vec::new(),
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
            self.declare(*parameter, Type::Unknown, false);
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
        for (access, root) in self.accesses.iter_mut().zip(&self.roots) {
            access.is_dead = root.is_some_and(|local| {
                let local = &self.locals[local];
                local.by_value && !local.is_used
            });
        }
        self.wholes.sort_by_key(|it| match it {
            Type::Struct(id) => id.0,
            _ => u32::MAX,
        });
        self.wholes.dedup();
        let mut accesses = std::mem::take(&mut self.accesses);
        accesses.shrink_to_fit();
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
        });
        self.roots.clear();
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
            "expression_statement"
            | "return_statement"
            | "if_statement"
            | "while_statement"
            | "do_statement"
            | "switch_statement"
            | "case_statement"
            | "throw_statement" => {
                self.statement += 1;
                self.visit_children(node);
            }
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
    pub(crate) fn whole(&mut self, of: Type) {
        if matches!(of, Type::Struct(_) | Type::Opaque(_)) {
            self.wholes.push(of);
        }
    }

    /// Adds an access.
    pub(crate) fn record(&mut self, access: NewAccess, node: Node, root: Option<usize>) {
        self.accesses.push(Access {
            owner: access.owner,
            field: access.field,
            kind: access.kind,
            line: line(node),
            statement: self.statement,
            base: access.base,
            value: None,
            is_dead: false,
            is_guess: access.is_guess,
        });
        self.roots.push(root);
    }
}

/// The part of an access that expressions decide.
pub(crate) struct NewAccess {
    pub owner: Owner,
    pub field: Name,
    pub kind: Kind,
    pub base: u32,
    pub is_guess: bool,
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

/// Hash of a text without its blanks.
pub fn hash_of(text: &[u8]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    for byte in text.iter().filter(|byte| !byte.is_ascii_whitespace()) {
        hasher.write_u8(*byte);
    }
    hasher.finish()
}
