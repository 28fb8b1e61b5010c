//! What the macros of the tree mean to the later passes, learned from all files before any is
//! parsed: attributes to blank, other names for types, fields and functions, and bodies that access
//! variables. A body is analysed once, as if it were a function, however often the macro is used.

use crate::names::{Name, Names};
use crate::parse::{parse, text};
use crate::prepare::{Define, Rewrite, Rewrites, prepare};
use crate::sources::Language;
use crate::syntax::{TypeName, type_name};
use rustc_hash::{FxHashMap, FxHashSet};
use tree_sitter::Node;

/// A macro whose body is worth analysing.
#[derive(Clone, Debug)]
pub struct MacroBody {
    /// Name.
    pub name: Name,
    /// Parameters; none for a macro without an argument list.
    pub parameters: Vec<Name>,
    /// The body as a function that can be parsed alone.
    pub source: String,
    /// Index of the file that defines it.
    pub file: usize,
    /// Line of the definition.
    pub line: u32,
}

/// What type a macro call has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// A fixed type.
    Type(TypeName),
    /// The type that this argument names.
    NamedBy(usize),
    /// The type of this argument.
    Argument(usize),
    /// What another function or macro returns.
    Call(Name),
}

/// All that is known of macros.
#[derive(Debug, Default)]
pub struct Macros {
    /// Words to rewrite before parsing.
    pub rewrites: Rewrites,
    /// `#define a b.c`: the names that `a` stands for.
    pub aliases: FxHashMap<Name, Vec<Name>>,
    /// `#define T struct s`: types under another name.
    pub types: FxHashMap<Name, TypeName>,
    /// `#define ARGS T t`: a parameter hidden in a macro.
    pub parameters: FxHashMap<Name, (TypeName, Name)>,
    /// Types of macro calls.
    pub returns: FxHashMap<Name, Returns>,
    /// Bodies to analyse, in file order.
    bodies: Vec<MacroBody>,
}

/// Whether a definition could matter at all; the millions of plain constants do not.
pub fn is_interesting(define: &Define) -> bool {
    let body = define.body.as_str();
    if body.is_empty() {
        return true;
    }
    if define.parameters.is_some() {
        return body.contains(['(', '.', '=', '>', '+', '-']) || is_identifier(body);
    }
    body.starts_with(|first: char| first.is_ascii_alphabetic() || "_(&*".contains(first))
        && !body.starts_with("(0")
}

/// Builds the table from the interesting definitions of every file, in file order.
pub fn learn(defines: &[Vec<Define>], builtin: &Rewrites, names: &Names) -> Macros {
    let mut macros = Macros { rewrites: builtin.clone(), ..Macros::default() };
    let mut meaningful: FxHashSet<&str> = FxHashSet::default();
    let mut plain: FxHashSet<&str> = FxHashSet::default();
    for define in defines.iter().flatten() {
        if !is_attribute(&define.body) {
            meaningful.insert(&define.name);
        }
        if define.parameters.is_none() {
            plain.insert(&define.name);
        }
    }
    let rewrite = |define: &Define| match meaningful.contains(define.name.as_str()) {
        false if plain.contains(define.name.as_str()) => Some(Rewrite::Blank),
        false => Some(Rewrite::BlankCall),
        true => opens_declaration(define).map(Rewrite::Open),
    };
    for define in defines.iter().flatten() {
        if let Some(rewrite) = rewrite(define) {
            macros.rewrites.insert(define.name.as_str().into(), rewrite);
        }
    }
    for (file, list) in defines.iter().enumerate() {
        for define in list.iter().filter(|it| !it.body.is_empty() && rewrite(it).is_none()) {
            macros.add(define, file, names);
        }
    }
    macros
}

impl Macros {
    /// The bodies that a file defines.
    pub fn bodies_of(&self, file: usize) -> &[MacroBody] {
        let start = self.bodies.partition_point(|it| it.file < file);
        let length = self.bodies[start..].partition_point(|it| it.file == file);
        &self.bodies[start..start + length]
    }

    fn add(&mut self, define: &Define, file: usize, names: &Names) {
        let name = names.intern(&define.name);
        let body = define.body.as_str();
        if define.parameters.is_none() && self.add_other_name(name, body, names) {
            return;
        }
        let parameters = define.parameters.iter().flatten();
        let parameters: Vec<_> = parameters.map(|one| names.intern(one)).collect();
        let source = format!("void m(){{{body};}}");
        let source = prepare(source.as_bytes(), Language::C, &self.rewrites);
        let source = String::from_utf8_lossy(&source).into_owned();
        if let Some(returns) = returns(&source, &parameters, names) {
            self.returns.entry(name).or_insert(returns);
        }
        let accesses = body.contains("->") || body.contains('.') || body.contains('=');
        let calls = body.contains('(');
        if accesses || calls {
            self.bodies.push(MacroBody { name, parameters, source, file, line: define.line });
        }
    }

    fn add_other_name(&mut self, name: Name, body: &str, names: &Names) -> bool {
        let spaced = body.replace('*', " ");
        let words: Vec<_> = spaced.split_whitespace().collect();
        match words[..] {
            ["struct" | "union", tag] => {
                self.types.insert(name, TypeName::Tag(names.intern(tag)));
                return true;
            }
            ["struct" | "union", tag, parameter] if is_identifier(parameter) => {
                let typed = (TypeName::Tag(names.intern(tag)), names.intern(parameter));
                self.parameters.insert(name, typed);
                return true;
            }
            [of, parameter] if is_identifier(of) && is_identifier(parameter) => {
                let typed = (TypeName::Named(names.intern(of)), names.intern(parameter));
                self.parameters.insert(name, typed);
                return true;
            }
            _ => {}
        }
        let parts: Vec<_> = body.split('.').map(str::trim).collect();
        if parts.iter().all(|part| is_identifier(part)) {
            self.aliases.insert(name, parts.iter().map(|part| names.intern(part)).collect());
            return true;
        }
        false
    }
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether a body is nothing but attributes and storage classes.
fn is_attribute(body: &str) -> bool {
    const WORDS: &[&str] = &[
        "__attribute__",
        "__attribute",
        "__declspec",
        "extern",
        "static",
        "inline",
        "__inline",
        "__inline__",
        "const",
        "volatile",
        "register",
        "__restrict",
        "restrict",
        "__extension__",
        "noreturn",
        "_Noreturn",
        "alignas",
        "_Alignas",
        "__asm__",
    ];
    if body.starts_with('(') {
        return false;
    }
    let (mut rest, mut depth) = (body, 0);
    while let Some(first) = rest.chars().next() {
        let length = rest.bytes().take_while(|it| it.is_ascii_alphanumeric() || *it == b'_');
        let length = length.count().max(first.len_utf8());
        let (word, after) = rest.split_at(length);
        match word {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ if depth > 0 || word.trim().is_empty() || WORDS.contains(&word) => {}
            _ => return false,
        }
        rest = after;
    }
    depth == 0
}

fn opens_declaration(define: &Define) -> Option<&'static str> {
    const OPENINGS: [&str; 4] = ["typedef struct", "typedef union", "struct", "union"];
    define.parameters.as_ref()?;
    let closed = define.body.contains(['{', ';', '*', '=']);
    OPENINGS.into_iter().find(|words| !closed && define.body.starts_with(words))
}

/// The type of the last expression of a macro body.
fn returns(source: &str, parameters: &[Name], names: &Names) -> Option<Returns> {
    let tree = parse(source.as_bytes(), Language::C)?;
    let body = tree.root_node().named_child(0)?.child_by_field_name("body")?;
    let mut cursor = body.walk();
    let last = body.named_children(&mut cursor).filter(|it| it.kind() == "expression_statement");
    let expression = last.last()?.named_child(0)?;
    expression_type(expression, source.as_bytes(), parameters, names)
}

/// The operand that decides the type: inside parentheses and `&`, last of a list.
fn innermost(mut node: Node) -> Option<Node> {
    loop {
        node = match node.kind() {
            "parenthesized_expression" | "pointer_expression" => {
                node.child_by_field_name("argument").or_else(|| node.named_child(0))?
            }
            "comma_expression" | "conditional_expression" => {
                node.named_child(node.named_child_count().checked_sub(1)?)?
            }
            _ => return Some(node),
        }
    }
}

fn expression_type(
    node: Node,
    source: &[u8],
    parameters: &[Name],
    names: &Names,
) -> Option<Returns> {
    let node = innermost(node)?;
    let position = |name: Name| parameters.iter().position(|parameter| *parameter == name);
    match node.kind() {
        "cast_expression" => {
            match type_name(node.child_by_field_name("type")?, source, names, None) {
                TypeName::Named(name) => Some(match position(name) {
                    Some(index) => Returns::NamedBy(index),
                    None => Returns::Type(TypeName::Named(name)),
                }),
                other => Some(Returns::Type(other)),
            }
        }
        "call_expression" => {
            let function = text(node.child_by_field_name("function")?, source);
            if function.ends_with("container_of") || function.ends_with("_entry") {
                let of = node.child_by_field_name("arguments")?.named_child(1)?;
                let of = names.intern(text(of, source).trim());
                return Some(match position(of) {
                    Some(index) => Returns::NamedBy(index),
                    None => Returns::Type(TypeName::Named(of)),
                });
            }
            is_identifier(function).then(|| Returns::Call(names.intern(function)))
        }
        "identifier" => position(names.intern(text(node, source))).map(Returns::Argument),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::prepare_with_notes;

    fn learned(lines: &[&str]) -> (Macros, Names) {
        let names = Names::default();
        let text = lines.join("\n");
        let (_, notes) = prepare_with_notes(text.as_bytes(), Language::C, &Rewrites::default());
        let kept: Vec<_> = notes.defines.into_iter().filter(is_interesting).collect();
        (learn(&[kept], &Rewrites::default(), &names), names)
    }

    #[test]
    fn attributes_are_blanked_unless_they_mean_something_elsewhere() {
        let (macros, _) = learned(&[
            "#define API __attribute__((visibility(\"default\")))",
            "#define EMPTY(x)",
            "#define TRACE(x)",
            "#define TRACE(x) log(x)",
            "#define CATALOG(name, oid) typedef struct CONCAT(Form_, name)",
        ]);
        assert_eq!(macros.rewrites.get("API"), Some(&Rewrite::Blank));
        assert_eq!(macros.rewrites.get("EMPTY"), Some(&Rewrite::BlankCall));
        assert_eq!(macros.rewrites.get("TRACE"), None);
        assert_eq!(macros.rewrites.get("CATALOG"), Some(&Rewrite::Open("typedef struct")));
    }

    #[test]
    fn the_type_of_a_macro_call_is_read_off_its_body() {
        let (macros, names) = learned(&[
            "#define makeNode(_type_) ((_type_ *) newNode(sizeof(_type_)))",
            "#define to_foo(p) container_of(p, struct foo, member)",
            "#define PRIV(x) ((struct priv *)(x)->data)",
            "#define SAME(x) (x)",
        ]);
        let of = |name: &str| macros.returns.get(&names.intern(name)).copied();
        assert_eq!(of("makeNode"), Some(Returns::NamedBy(0)));
        assert_eq!(of("to_foo"), Some(Returns::Type(TypeName::Named(names.intern("foo")))));
        assert_eq!(of("PRIV"), Some(Returns::Type(TypeName::Tag(names.intern("priv")))));
        assert_eq!(of("SAME"), Some(Returns::Argument(0)));
    }
}
