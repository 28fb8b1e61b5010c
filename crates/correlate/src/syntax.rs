//! Reads type names and declarators out of syntax trees.
//!
//! A type is kept as little more than the name of the struct at its bottom: pointers, arrays and
//! functions around it do not change which struct a field belongs to, so they are not kept.

use crate::names::{Name, Names};
use crate::parse::text;
use tree_sitter::Node;

/// What a declaration says about the struct at the bottom of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeName {
    /// A number, an enumeration, `void`.
    Scalar,
    /// To be taken from elsewhere (`auto`, `typeof`, a macro).
    Unknown,
    /// `struct S`.
    Tag(Name),
    /// A typedef, or a class by its plain name.
    Named(Name),
}

/// A type with what little is kept of the declarator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Typed {
    /// The struct at the bottom.
    pub base: TypeName,
    /// Whether the object itself is of that type, not a pointer to it or an array of it.
    pub by_value: bool,
    /// Whether it is a pointer: what is written through it is not part of it, as array elements are.
    pub is_pointer: bool,
    /// Whether it is a function, or a pointer to one.
    pub is_callback: bool,
}

impl Typed {
    /// A type that nothing is known of.
    pub const UNKNOWN: Self =
        Self { base: TypeName::Unknown, by_value: false, is_pointer: false, is_callback: false };
}

/// The end of a declarator.
pub struct Declared<'t> {
    /// The node that holds the name.
    pub name: Node<'t>,
    /// Whether neither pointer, array nor function stands between the name and the type.
    pub by_value: bool,
    /// Whether a pointer stands next to the name.
    pub is_pointer: bool,
    /// Whether a function stands between the name and the type.
    pub is_callback: bool,
    /// Whether the name is that of a function, not of a pointer to one.
    pub function: Option<Node<'t>>,
    /// Initial value.
    pub value: Option<Node<'t>>,
}

/// Templates whose `->` or `[]` leads to their first argument.
const TRANSPARENT: &[&str] = &[
    "unique_ptr",
    "shared_ptr",
    "weak_ptr",
    "scoped_ptr",
    "scoped_refptr",
    "RefPtr",
    "nsCOMPtr",
    "optional",
    "atomic",
    "vector",
    "list",
    "deque",
    "set",
    "array",
    "span",
];

/// The type that a specifier names. `anonymous` names a struct that has a body but no tag.
pub fn type_name(node: Node, source: &[u8], names: &Names, anonymous: Option<Name>) -> TypeName {
    match node.kind() {
        "struct_specifier" | "union_specifier" | "class_specifier" => {
            match node.child_by_field_name("name") {
                Some(name) => tag(name, source, names),
                None => anonymous.map_or(TypeName::Unknown, TypeName::Tag),
            }
        }
        "primitive_type" | "sized_type_specifier" | "enum_specifier" => TypeName::Scalar,
        "type_identifier" | "identifier" | "namespace_identifier" => {
            TypeName::Named(names.intern(text(node, source)))
        }
        "qualified_identifier" | "dependent_type" => last_named(node)
            .map_or(TypeName::Unknown, |inner| type_name(inner, source, names, anonymous)),
        "template_type" => template(node, source, names),
        "type_descriptor" => node
            .child_by_field_name("type")
            .map_or(TypeName::Unknown, |inner| type_name(inner, source, names, anonymous)),
        _ => TypeName::Unknown,
    }
}

fn tag(name: Node, source: &[u8], names: &Names) -> TypeName {
    match name.kind() {
        "qualified_identifier" => {
            last_named(name).map_or(TypeName::Unknown, |inner| tag(inner, source, names))
        }
        "template_type" => template(name, source, names),
        _ => TypeName::Tag(names.intern(text(name, source))),
    }
}

fn template(node: Node, source: &[u8], names: &Names) -> TypeName {
    let Some(name) = node.child_by_field_name("name") else { return TypeName::Unknown };
    let argument = node.child_by_field_name("arguments").and_then(|list| list.named_child(0));
    match argument {
        Some(argument) if TRANSPARENT.contains(&text(name, source)) => {
            type_name(argument, source, names, None)
        }
        _ => TypeName::Named(names.intern(text(name, source))),
    }
}

fn last_named(node: Node) -> Option<Node> {
    node.child_by_field_name("name")
        .or_else(|| node.named_child(node.named_child_count().checked_sub(1)?))
}

impl Declared<'_> {
    /// The type of what is declared, given the specifier before it.
    pub fn typed(&self, base: TypeName) -> Typed {
        let Self { by_value, is_pointer, is_callback, .. } = *self;
        Typed { base, by_value, is_pointer, is_callback }
    }
}

/// Follows a declarator down to the name; none if it has no name.
pub fn declared(declarator: Node) -> Option<Declared> {
    let mut at = declarator;
    let (mut by_value, mut is_pointer, mut is_callback) = (true, false, false);
    let (mut function, mut value) = (None, None);
    loop {
        match at.kind() {
            "identifier"
            | "field_identifier"
            | "type_identifier"
            | "qualified_identifier"
            | "destructor_name"
            | "operator_name"
            | "primitive_type" => {
                let found =
                    Declared { name: at, by_value, is_pointer, is_callback, function, value };
                return Some(found);
            }
            "init_declarator" => value = at.child_by_field_name("value"),
            "function_declarator" => {
                (by_value, is_callback) = (false, true);
                function = Some(at);
            }
            "pointer_declarator" => {
                (by_value, is_pointer) = (false, true);
                function = None;
            }
            "array_declarator" => (by_value, is_pointer) = (false, false),
            _ => {}
        }
        at = at.child_by_field_name("declarator").or_else(|| inner_declarator(at))?;
    }
}

/// Parenthesised and reference declarators hold their inner one without a field name.
fn inner_declarator(node: Node) -> Option<Node> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .find(|child| child.kind().ends_with("declarator") || child.kind().ends_with("identifier"))
}

/// The declarators of a declaration.
pub fn declarators(declaration: Node) -> Vec<Node> {
    let mut cursor = declaration.walk();
    declaration.children_by_field_name("declarator", &mut cursor).collect()
}

/// Whether a declaration carries the word as a storage class or qualifier.
pub fn has_word(declaration: Node, source: &[u8], word: &str) -> bool {
    let mut cursor = declaration.walk();
    declaration.children(&mut cursor).any(|child| {
        matches!(child.kind(), "storage_class_specifier" | "type_qualifier")
            && text(child, source) == word
    })
}
