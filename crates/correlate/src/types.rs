//! The types of the whole tree, and how they look from one file.
//!
//! Large trees hold many structs of the same name, each private to a driver or a tool. Which one a
//! file means is decided by distance: its own, then those of the headers it includes, then those of
//! the nearest folder. Different definitions stay different types.

use crate::declare::{Declarations, GlobalDeclaration};
use crate::macros::{Macros, Returns};
use crate::names::{Name, Names};
use crate::syntax::{TypeName, Typed};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// Number of a file in the sorted list of sources.
pub type FileId = u32;

/// A struct definition in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StructId(pub u32);

/// The struct at the bottom of an expression's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Nothing is known.
    Unknown,
    /// It has no fields.
    Scalar,
    /// A struct whose definition is in the tree.
    Struct(StructId),
    /// A struct known by name alone: its definition is in no file that was given.
    Opaque(Name),
}

/// A struct definition.
#[derive(Debug)]
pub struct Struct {
    /// Name.
    pub name: Name,
    /// Where it is defined.
    pub file: FileId,
    fields: FxHashMap<Name, Typed>,
    bases: Vec<Name>,
}

/// A file as the table sees it.
#[derive(Clone, Debug)]
pub struct FileFacts {
    /// Path as shown.
    pub path: String,
    /// Whether it is a header.
    pub is_header: bool,
    /// Paths it includes, as written.
    pub includes: Vec<String>,
}

/// All declarations of the tree.
#[derive(Default)]
pub struct Types {
    files: Vec<FileFacts>,
    /// Files that each file includes.
    included: Vec<Vec<FileId>>,
    structs: Vec<Struct>,
    by_name: FxHashMap<Name, Vec<(FileId, StructId)>>,
    typedefs: FxHashMap<Name, Vec<(FileId, Typed)>>,
    globals: FxHashMap<Name, Vec<(FileId, GlobalDeclaration)>>,
    functions: FxHashMap<Name, Vec<(FileId, TypeName)>>,
    holders: FxHashMap<Name, Vec<StructId>>,
}

impl Types {
    /// Builds the table from what each file declares.
    pub fn new(files: Vec<FileFacts>, declarations: Vec<Declarations>) -> Self {
        let included = resolve_includes(&files);
        let mut types = Self { files, included, ..Self::default() };
        for (file, declared) in declarations.into_iter().enumerate() {
            types.add(u32::try_from(file).expect("fewer than 2^32 files"), declared);
        }
        for (index, definition) in types.structs.iter().enumerate() {
            for field in definition.fields.keys() {
                types.holders.entry(*field).or_default().push(StructId(index as u32));
            }
        }
        types
    }

    fn add(&mut self, file: FileId, declared: Declarations) {
        for it in declared.structs {
            let known = self.by_name.entry(it.name).or_default();
            // Alternatives under #if in one file are one type.
            let id = match known.last() {
                Some((in_file, id)) if *in_file == file => *id,
                _ => {
                    let id = StructId(self.structs.len() as u32);
                    known.push((file, id));
                    let fields = FxHashMap::default();
                    self.structs.push(Struct { name: it.name, file, fields, bases: it.bases });
                    id
                }
            };
            self.structs[id.0 as usize].fields.extend(it.fields);
        }
        for (name, typed) in declared.typedefs {
            self.typedefs.entry(name).or_default().push((file, typed));
        }
        for global in declared.globals {
            self.globals.entry(global.name).or_default().push((file, global));
        }
        for (name, returns) in declared.functions {
            self.functions.entry(name).or_default().push((file, returns));
        }
    }

    /// A definition.
    pub fn structure(&self, id: StructId) -> &Struct {
        &self.structs[id.0 as usize]
    }

    /// How many definitions share a name.
    pub fn namesakes(&self, name: Name) -> usize {
        self.by_name.get(&name).map_or(0, Vec::len)
    }

    /// Path of a file.
    pub fn path(&self, file: FileId) -> &str {
        &self.files[file as usize].path
    }
}

/// The table as one file sees it. Choices among namesakes are remembered.
pub struct View<'a> {
    types: &'a Types,
    macros: &'a Macros,
    file: FileId,
    /// Files reached through includes, and after how many steps.
    reach: FxHashMap<FileId, u32>,
    chosen: RefCell<FxHashMap<TypeNameKey, Type>>,
}

type TypeNameKey = (bool, Name);

impl<'a> View<'a> {
    /// The view of `file`.
    pub fn new(types: &'a Types, macros: &'a Macros, file: FileId) -> Self {
        let mut reach = FxHashMap::default();
        reach.insert(file, 0);
        let mut front = vec![file];
        for step in 1.. {
            let mut next = Vec::new();
            for included in front.iter().flat_map(|it| &types.included[*it as usize]) {
                if !reach.contains_key(included) {
                    reach.insert(*included, step);
                    next.push(*included);
                }
            }
            if next.is_empty() {
                break;
            }
            front = next;
        }
        Self { types, macros, file, reach, chosen: RefCell::default() }
    }

    /// How far a declaration in `other` is from this file: smaller is likelier to be meant.
    fn distance(&self, other: FileId) -> u32 {
        const UNREACHED: u32 = 1 << 16;
        const PRIVATE: u32 = 1 << 20;
        if let Some(steps) = self.reach.get(&other) {
            return *steps;
        }
        let (here, there) = (self.types.path(self.file), self.types.path(other));
        let shared = here.split('/').zip(there.split('/')).take_while(|(a, b)| a == b).count();
        let folders = there.split('/').count() + here.split('/').count() - 2 * shared;
        let private = if self.types.files[other as usize].is_header { 0 } else { PRIVATE };
        UNREACHED + private + folders as u32
    }

    fn nearest<T: Copy>(&self, candidates: &[(FileId, T)]) -> Option<T> {
        match candidates {
            [] => None,
            [(_, only)] => Some(*only),
            _ => candidates
                .iter()
                .min_by_key(|(file, _)| self.distance(*file))
                .map(|(_, nearest)| *nearest),
        }
    }

    /// The type that a name in this file means.
    pub fn resolve(&self, name: TypeName) -> Type {
        let key = match name {
            TypeName::Scalar => return Type::Scalar,
            TypeName::Unknown => return Type::Unknown,
            TypeName::Tag(tag) => (true, tag),
            TypeName::Named(named) => (false, named),
        };
        if let Some(known) = self.chosen.borrow().get(&key) {
            return *known;
        }
        let found = self.resolve_slowly(name);
        self.chosen.borrow_mut().insert(key, found);
        found
    }

    fn resolve_slowly(&self, mut name: TypeName) -> Type {
        // Typedefs of typedefs; a cycle among namesakes ends at the bound.
        for _ in 0..16 {
            match name {
                TypeName::Scalar => return Type::Scalar,
                TypeName::Unknown => return Type::Unknown,
                TypeName::Tag(tag) => return self.tagged(tag),
                TypeName::Named(named) => {
                    let typedefs = self.types.typedefs.get(&named);
                    let nearest = typedefs.and_then(|all| self.nearest(all));
                    match nearest.map(|typed| typed.base).or_else(|| self.other_name(named)) {
                        Some(next) if next != name => name = next,
                        _ => return self.tagged(named),
                    }
                }
            }
        }
        Type::Unknown
    }

    /// Whether an object declared so is the struct itself, also behind typedefs.
    pub fn holds_value(&self, typed: Typed) -> bool {
        let (mut name, mut by_value) = (typed.base, typed.by_value);
        for _ in 0..16 {
            let TypeName::Named(named) = name else { return by_value };
            let typedefs = self.types.typedefs.get(&named);
            let Some(next) = typedefs.and_then(|all| self.nearest(all)) else { return by_value };
            by_value &= next.by_value;
            if next.base == name {
                return by_value;
            }
            name = next.base;
        }
        false
    }

    /// The parameter that a macro in a parameter list hides.
    pub fn hidden_parameter(&self, name: Name) -> Option<(TypeName, Name)> {
        self.macros.parameters.get(&name).copied()
    }

    fn other_name(&self, name: Name) -> Option<TypeName> {
        if let Some(known) = self.macros.types.get(&name) {
            return Some(*known);
        }
        match self.macros.aliases.get(&name).map(Vec::as_slice) {
            Some([only]) if !self.types.by_name.contains_key(&name) => Some(TypeName::Named(*only)),
            _ => None,
        }
    }

    fn tagged(&self, tag: Name) -> Type {
        let all = self.types.by_name.get(&tag);
        let nearest = all.and_then(|all| self.nearest(all));
        nearest.map_or(Type::Opaque(tag), Type::Struct)
    }

    /// The field of a type: the struct that really holds it, and its own type.
    pub fn field(&self, of: Type, field: Name) -> Option<(StructId, Typed)> {
        let Type::Struct(id) = of else { return None };
        self.field_of(id, field, 0).or_else(|| {
            // The nearest namesake was the wrong one if another has the field.
            let all = self.types.by_name.get(&self.types.structure(id).name)?;
            let mut holders = all.iter().filter_map(|(file, other)| {
                let typed = self.types.structure(*other).fields.get(&field)?;
                Some((self.distance(*file), *other, *typed))
            });
            let first = holders.next()?;
            let nearest = holders.fold(first, |a, b| if b.0 < a.0 { b } else { a });
            Some((nearest.1, nearest.2))
        })
    }

    fn field_of(&self, id: StructId, field: Name, depth: usize) -> Option<(StructId, Typed)> {
        let definition = self.types.structure(id);
        if let Some(typed) = definition.fields.get(&field) {
            return Some((id, *typed));
        }
        if depth > 16 {
            return None;
        }
        definition.bases.iter().find_map(|base| match self.resolve(TypeName::Named(*base)) {
            Type::Struct(base) => self.field_of(base, field, depth + 1),
            _ => None,
        })
    }

    /// The only struct that can be meant by a field of this name: the only one of the tree, or the
    /// only one that this file can see.
    pub fn guess(&self, field: Name) -> Option<(StructId, Typed)> {
        let holders = self.types.holders.get(&field)?;
        let typed = |id: StructId| (id, self.types.structure(id).fields[&field]);
        if let [only] = holders[..] {
            return Some(typed(only));
        }
        let mut visible =
            holders.iter().filter(|id| self.reach.contains_key(&self.types.structure(**id).file));
        match (visible.next(), visible.next()) {
            (Some(only), None) => Some(typed(*only)),
            _ => None,
        }
    }

    /// A variable at file scope, and the file whose own it is if it is static.
    pub fn global(&self, name: Name) -> Option<(Option<FileId>, GlobalDeclaration)> {
        let all = self.types.globals.get(&name)?;
        let visible = |file: FileId, it: &GlobalDeclaration| !it.is_static || file == self.file;
        let reached =
            |file: FileId, it: &GlobalDeclaration| it.is_static && self.reach.contains_key(&file);
        let (file, found) = all
            .iter()
            .filter(|(file, it)| visible(*file, it) || reached(*file, it))
            .min_by_key(|(file, _)| self.distance(*file))?;
        Some((found.is_static.then_some(*file), *found))
    }

    /// The type that a call of `name` has; `argument` gives the type named or had by an argument.
    pub fn returned(
        &self,
        name: Name,
        argument: &mut dyn FnMut(usize, bool) -> Type,
        depth: usize,
    ) -> Type {
        if let Some(all) = self.types.functions.get(&name)
            && let Some(found) = self.nearest(all)
        {
            return self.resolve(found);
        }
        if depth > 8 {
            return Type::Unknown;
        }
        match self.macros.returns.get(&name) {
            Some(Returns::Type(name)) => self.resolve(*name),
            Some(Returns::NamedBy(index)) => argument(*index, true),
            Some(Returns::Argument(index)) => argument(*index, false),
            Some(Returns::Call(other)) => {
                self.returned(*other, &mut |_, _| Type::Unknown, depth + 1)
            }
            None => match self.macros.aliases.get(&name).map(Vec::as_slice) {
                Some([other]) => self.returned(*other, argument, depth + 1),
                _ => Type::Unknown,
            },
        }
    }

    /// The name of a struct of the tree.
    pub fn struct_name(&self, id: StructId) -> Name {
        self.types.structure(id).name
    }

    /// The names that a macro name stands for.
    pub fn alias(&self, name: Name) -> Option<&[Name]> {
        self.macros.aliases.get(&name).map(Vec::as_slice)
    }

    /// Whether a macro of this name has a body that was analysed.
    pub fn is_macro(&self, name: Name) -> bool {
        self.macros.returns.contains_key(&name)
    }
}

/// Finds the files that `#include` lines mean: beside the including file first, else any file of
/// the tree whose path ends so, the one that shares most folders with the including file.
fn resolve_includes(files: &[FileFacts]) -> Vec<Vec<FileId>> {
    let mut by_file_name: FxHashMap<&str, Vec<FileId>> = FxHashMap::default();
    for (id, file) in files.iter().enumerate() {
        by_file_name.entry(last_part(&file.path)).or_default().push(id as FileId);
    }
    let find = |from: &FileFacts, include: &str| {
        let include = include.trim_start_matches("../").trim_start_matches("./");
        let candidates = by_file_name.get(last_part(include))?;
        let fits = |path: &str| {
            path.strip_suffix(include).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        let shared = |id: &FileId| {
            let path = &files[*id as usize].path;
            let shared = path.split('/').zip(from.path.split('/')).take_while(|(a, b)| a == b);
            (shared.count(), std::cmp::Reverse(path.len()))
        };
        let fitting = candidates.iter().filter(|id| fits(&files[**id as usize].path));
        fitting.copied().max_by_key(shared)
    };
    files
        .iter()
        .map(|from| from.includes.iter().filter_map(|it| find(from, it)).collect())
        .collect()
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// How reports name a type; namesakes are told apart by their file.
pub fn shown(types: &Types, names: &Names, id: StructId) -> String {
    let definition = types.structure(id);
    let name = names.text(definition.name);
    if types.namesakes(definition.name) > 1 {
        format!("{name}@{}", types.path(definition.file))
    } else {
        name.to_string()
    }
}
