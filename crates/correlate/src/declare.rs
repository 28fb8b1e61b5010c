//! The first pass: what each file declares. Structs with their fields, typedefs, global variables,
//! and what functions return. Bodies of functions are left to the second pass.

use crate::names::{Name, Names};
use crate::parse::text;
use crate::syntax::{TypeName, Typed, declarators, declared, has_word, type_name};
use tree_sitter::Node;

/// A struct, union or class definition.
#[derive(Clone, Debug)]
pub struct StructDeclaration {
    /// Tag; typedef or variable name if it has no tag; `outer.member` inside another struct.
    pub name: Name,
    /// Fields, those of anonymous members included.
    pub fields: Vec<(Name, Typed)>,
    /// Fields that share their memory with others: the number of the union, and which of its members
    /// they belong to.
    pub variants: Vec<(Name, Variant)>,
    /// Base classes.
    pub bases: Vec<Name>,
}

/// A member of a union inside a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Number of the union in the struct.
    pub union: u32,
    /// Number of the member in the union.
    pub member: u32,
}

/// The fields of a struct while its body is followed.
#[derive(Default)]
struct Fields {
    fields: Vec<(Name, Typed)>,
    variants: Vec<(Name, Variant)>,
    /// Unions met so far.
    unions: u32,
    /// The union that is being followed.
    inside: Option<Variant>,
}

impl Fields {
    fn add(&mut self, name: Name, typed: Typed) {
        self.fields.push((name, typed));
        self.variants.extend(self.inside.map(|variant| (name, variant)));
    }

    /// Enters a union, unless it is part of a member of another: the outer one decides.
    fn enter_union(&mut self) -> bool {
        if self.inside.is_some() {
            return false;
        }
        self.inside = Some(Variant { union: self.unions, member: 0 });
        self.unions += 1;
        true
    }
}

/// A variable at file scope.
#[derive(Clone, Copy, Debug)]
pub struct GlobalDeclaration {
    /// Name.
    pub name: Name,
    /// Type.
    pub typed: Typed,
    /// Whether other files cannot see it.
    pub is_static: bool,
    /// Whether it can ever change.
    pub is_constant: bool,
}

/// What one file declares.
#[derive(Clone, Debug, Default)]
pub struct Declarations {
    /// Structs.
    pub structs: Vec<StructDeclaration>,
    /// Typedefs and what they stand for.
    pub typedefs: Vec<(Name, Typed)>,
    /// Variables.
    pub globals: Vec<GlobalDeclaration>,
    /// Functions and the struct at the bottom of what they return.
    pub functions: Vec<(Name, TypeName)>,
}

/// How deep declarations are followed; real code nests a handful of levels.
const MOST_NESTING: usize = 100;

/// Collects the declarations of a parsed file.
pub fn declare(root: Node, source: &[u8], names: &Names) -> Declarations {
    let mut pass = Pass { source, names, out: Declarations::default() };
    pass.scope(root, 0);
    pass.out
}

struct Pass<'a> {
    source: &'a [u8],
    names: &'a Names,
    out: Declarations,
}

impl Pass<'_> {
    fn intern(&self, node: Node) -> Name {
        self.names.intern(text(node, self.source))
    }

    fn scope(&mut self, node: Node, depth: usize) {
        if depth > MOST_NESTING {
            return;
        }
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "declaration" => self.declaration(child, depth),
                "type_definition" => self.typedef(child, depth),
                "function_definition" => self.function(child, depth),
                "struct_specifier" | "union_specifier" | "class_specifier" => {
                    self.structure(child, None, depth);
                }
                "alias_declaration" => self.alias(child),
                "linkage_specification"
                | "declaration_list"
                | "namespace_definition"
                | "template_declaration"
                | "ERROR" => self.scope(child, depth + 1),
                _ => {}
            }
        }
    }

    fn function(&mut self, node: Node, depth: usize) {
        let returns = self.specifier(node, None, depth);
        if let Some(found) = node.child_by_field_name("declarator").and_then(declared)
            && found.function.is_some()
        {
            let name = self.intern(found.name);
            self.out.functions.push((name, returns));
        }
    }

    /// The type of a declaration, whose struct body is declared on the way.
    fn specifier(&mut self, node: Node, anonymous: Option<Name>, depth: usize) -> TypeName {
        let Some(specifier) = node.child_by_field_name("type") else { return TypeName::Scalar };
        self.structure(specifier, anonymous, depth);
        type_name(specifier, self.source, self.names, anonymous)
    }

    /// The name that an untagged struct takes from the first thing declared with it.
    fn borrowed_name(&self, node: Node) -> Option<Name> {
        let declarator = node.child_by_field_name("declarator")?;
        declared(declarator).map(|found| self.intern(found.name))
    }

    fn declaration(&mut self, node: Node, depth: usize) {
        let base = self.specifier(node, self.borrowed_name(node), depth);
        let is_static = has_word(node, self.source, "static");
        let is_constant = has_word(node, self.source, "const");
        for declarator in declarators(node) {
            let Some(found) = declared(declarator) else { continue };
            let name = self.intern(found.name);
            if found.function.is_some() {
                self.out.functions.push((name, base));
                continue;
            }
            let typed = found.typed(base);
            // `const char *p` can be repointed; only an object that is constant itself cannot.
            let is_constant = is_constant && declarator_holds_value(declarator);
            self.out.globals.push(GlobalDeclaration { name, typed, is_static, is_constant });
        }
    }

    fn typedef(&mut self, node: Node, depth: usize) {
        let base = self.specifier(node, self.borrowed_name(node), depth);
        for declarator in declarators(node) {
            let Some(found) = declared(declarator) else { continue };
            let name = self.intern(found.name);
            self.out.typedefs.push((name, found.typed(base)));
        }
    }

    fn alias(&mut self, node: Node) {
        let (Some(name), Some(of)) =
            (node.child_by_field_name("name"), node.child_by_field_name("type"))
        else {
            return;
        };
        let base = type_name(of, self.source, self.names, None);
        let name = self.intern(name);
        self.out.typedefs.push((name, Typed { base, by_value: true, ..Typed::UNKNOWN }));
    }

    fn structure(&mut self, node: Node, anonymous: Option<Name>, depth: usize) {
        let Some(body) = node.child_by_field_name("body") else { return };
        if !matches!(node.kind(), "struct_specifier" | "union_specifier" | "class_specifier") {
            return;
        }
        let (TypeName::Tag(name) | TypeName::Named(name)) =
            type_name(node, self.source, self.names, anonymous)
        else {
            return;
        };
        let mut found = Fields::default();
        if node.kind() == "union_specifier" {
            found.enter_union();
        }
        self.fields(body, name, &mut found, depth + 1);
        let bases = self.bases(node);
        let Fields { fields, variants, .. } = found;
        self.out.structs.push(StructDeclaration { name, fields, variants, bases });
    }

    fn bases(&self, node: Node) -> Vec<Name> {
        let mut cursor = node.walk();
        let Some(clause) =
            node.named_children(&mut cursor).find(|child| child.kind() == "base_class_clause")
        else {
            return Vec::new();
        };
        let mut cursor = clause.walk();
        let bases = clause.named_children(&mut cursor);
        let names = bases.filter_map(|base| match type_name(base, self.source, self.names, None) {
            TypeName::Named(name) => Some(name),
            _ => None,
        });
        names.collect()
    }

    fn fields(&mut self, body: Node, owner: Name, out: &mut Fields, depth: usize) {
        self.members(body, owner, out, depth, true);
    }

    /// Follows the members of a body; of a union each is an alternative if `apart`.
    fn members(&mut self, body: Node, owner: Name, out: &mut Fields, depth: usize, apart: bool) {
        if depth > MOST_NESTING {
            return;
        }
        let mut cursor = body.walk();
        for member in body.named_children(&mut cursor) {
            if let Some(variant) = out.inside.as_mut().filter(|_| apart) {
                variant.member += 1;
            }
            match member.kind() {
                "field_declaration" => self.field(member, owner, out, depth),
                "function_definition" => self.function(member, depth),
                "template_declaration" | "ERROR" => self.fields(member, owner, out, depth + 1),
                "type_definition" => self.typedef(member, depth),
                "alias_declaration" => self.alias(member),
                _ => {}
            }
        }
    }

    fn field(&mut self, member: Node, owner: Name, out: &mut Fields, depth: usize) {
        let declarators = declarators(member);
        let specifier = member.child_by_field_name("type");
        if declarators.is_empty() {
            // An anonymous struct or union: its fields are the owner's own.
            match specifier.and_then(|it| Some((it, it.child_by_field_name("body")?))) {
                Some((it, body)) if it.child_by_field_name("name").is_none() => {
                    let entered = it.kind() == "union_specifier" && out.enter_union();
                    // The fields of a struct in a union are one member together.
                    let outer = out.inside.filter(|_| !entered);
                    self.members(body, owner, out, depth + 1, outer.is_none());
                    if entered {
                        out.inside = None;
                    }
                }
                _ => {
                    self.specifier(member, None, depth);
                }
            }
            return;
        }
        let inner = self.borrowed_name(member).map(|name| {
            let path = format!("{}.{}", self.names.text(owner), self.names.text(name));
            self.names.intern(&path)
        });
        let base = self.specifier(member, inner, depth);
        for declarator in declarators {
            let Some(found) = declared(declarator) else { continue };
            let name = self.intern(found.name);
            if found.function.is_some() {
                self.out.functions.push((name, base));
            } else {
                out.add(name, found.typed(base));
            }
        }
    }
}

fn declarator_holds_value(declarator: Node) -> bool {
    let mut at = Some(declarator);
    while let Some(node) = at {
        if node.kind() == "pointer_declarator" {
            return false;
        }
        at = node.child_by_field_name("declarator");
    }
    true
}
