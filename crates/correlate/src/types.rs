//! The types of the whole tree.
//!
//! Large trees hold many structs of the same name, each private to a driver or a tool. Different
//! definitions stay different types; which one a file means is for `view` to say.

use crate::declare::{Declarations, GlobalDeclaration, Variant};
use crate::names::{Name, Names};
use crate::syntax::{TypeName, Typed};
use rustc_hash::FxHashMap;

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
    pub(crate) fields: FxHashMap<Name, Typed>,
    pub(crate) variants: FxHashMap<Name, Variant>,
    pub(crate) bases: Vec<Name>,
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
    pub(crate) files: Vec<FileFacts>,
    /// Files that each file includes.
    pub(crate) included: Vec<Vec<FileId>>,
    pub(crate) structs: Vec<Struct>,
    pub(crate) by_name: FxHashMap<Name, Vec<(FileId, StructId)>>,
    pub(crate) typedefs: FxHashMap<Name, Vec<(FileId, Typed)>>,
    pub(crate) globals: FxHashMap<Name, Vec<(FileId, GlobalDeclaration)>>,
    pub(crate) functions: FxHashMap<Name, Vec<(FileId, TypeName)>>,
    pub(crate) holders: FxHashMap<Name, Vec<StructId>>,
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
                    let (fields, variants) = Default::default();
                    let bases = it.bases;
                    self.structs.push(Struct { name: it.name, file, fields, variants, bases });
                    id
                }
            };
            let known = &mut self.structs[id.0 as usize];
            known.fields.extend(it.fields);
            known.variants.extend(it.variants);
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

    /// Whether two fields share memory: they belong to different members of one union, which may be
    /// their struct, one around it, or an anonymous one in it.
    pub fn are_variants(
        &self,
        names: &Names,
        one: (StructId, Name),
        other: (StructId, Name),
    ) -> bool {
        if one.0 == other.0 && one.1 != other.1 {
            let variants = &self.structure(one.0).variants;
            if let (Some(one), Some(other)) = (variants.get(&one.1), variants.get(&other.1)) {
                return one.union == other.union && one.member != other.member;
            }
        }
        let path = |(id, field): (StructId, Name)| {
            format!("{}.{}", names.text(self.structure(id).name), names.text(field))
        };
        let (one_path, other_path) = (path(one), path(other));
        let shared = one_path.split('.').zip(other_path.split('.')).take_while(|(a, b)| a == b);
        let shared: Vec<_> = shared.map(|(part, _)| part).collect();
        // Where the paths part there must be a union, `S.u` for `S.u.a` and `S.u.b.c`.
        let around = names.find(&shared.join("."));
        let union = around.and_then(|name| self.by_name.get(&name)).map(Vec::as_slice);
        let in_file = |(file, _): &&(FileId, StructId)| *file == self.structure(one.0).file;
        let union = union.unwrap_or_default().iter().find(in_file);
        let Some((_, union)) = union.filter(|_| one_path != other_path) else { return false };
        let member = |path: &str| {
            let name = path.split('.').nth(shared.len()).and_then(|part| names.find(part));
            name.and_then(|name| self.structure(*union).variants.get(&name))
        };
        match (member(&one_path), member(&other_path)) {
            (Some(one), Some(other)) => one.union == other.union && one.member != other.member,
            _ => false,
        }
    }

    /// A struct and those that it holds by value, however deep: what happens to the whole of it happens
    /// to them.
    pub fn with_parts(&self, id: StructId) -> Vec<StructId> {
        const MOST: usize = 64;
        let mut all = vec![id];
        let mut next = 0;
        while next < all.len() && all.len() < MOST {
            let fields = self.structure(all[next]).fields.values();
            for part in fields.filter(|it| it.by_value).filter_map(|it| self.only(it.base, 0)) {
                if !all.contains(&part) {
                    all.push(part);
                }
            }
            next += 1;
        }
        all
    }

    /// Whether a field is a function or a pointer to one, also behind typedefs.
    pub fn is_callback(&self, id: StructId, field: Name) -> bool {
        let Some(mut at) = self.structure(id).fields.get(&field).copied() else { return false };
        for _ in 0..8 {
            let TypeName::Named(name) = at.base else { return at.is_callback };
            match self.typedefs.get(&name).map(Vec::as_slice) {
                Some([(_, next), ..]) if !at.is_callback => at = *next,
                _ => return at.is_callback,
            }
        }
        false
    }

    /// Whether a field is an array.
    pub fn is_array(&self, id: StructId, field: Name) -> bool {
        let typed = self.structure(id).fields.get(&field);
        typed.is_some_and(|it| !it.by_value && !it.is_pointer && !it.is_callback)
    }

    /// Whether a field links objects of one kind: it points to another object of its own struct.
    pub fn is_link(&self, id: StructId, field: Name) -> bool {
        let typed = self.structure(id).fields.get(&field);
        typed.is_some_and(|it| it.is_pointer && self.only(it.base, 0) == Some(id))
    }

    /// The struct of a name that only one has.
    fn only(&self, name: TypeName, depth: usize) -> Option<StructId> {
        let (TypeName::Tag(name) | TypeName::Named(name)) = name else { return None };
        if let Some([(_, only)]) = self.by_name.get(&name).map(Vec::as_slice) {
            return Some(*only);
        }
        match self.typedefs.get(&name).map(Vec::as_slice) {
            Some([(_, typed)]) if typed.by_value && depth < 8 => self.only(typed.base, depth + 1),
            _ => None,
        }
    }

    /// Path of a file.
    pub fn path(&self, file: FileId) -> &str {
        &self.files[file as usize].path
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
