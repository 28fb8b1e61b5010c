//! The types of the tree as one file sees them: which of several namesakes a name means there.
//!
//! Which one is meant is decided by distance: the file's own, then those of the headers it includes,
//! then those of the nearest folder.

use crate::declare::GlobalDeclaration;
use crate::macros::{Macros, Returns};
use crate::names::Name;
use crate::syntax::{TypeName, Typed};
use crate::types::{FileId, StructId, Type, Types};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

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

    /// Whether an object declared so is a pointer, also by a typedef.
    pub fn is_pointer(&self, typed: Typed) -> bool {
        let mut at = typed;
        for _ in 0..16 {
            let TypeName::Named(named) = at.base else { return at.is_pointer };
            if at.is_pointer || !at.by_value {
                return at.is_pointer;
            }
            let typedefs = self.types.typedefs.get(&named);
            match typedefs.and_then(|all| self.nearest(all)) {
                Some(next) if next.base != at.base => at = next,
                Some(next) => return next.is_pointer,
                None => return false,
            }
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

    /// Whether all fields of this name are structs themselves, not pointers to them.
    pub fn is_always_value(&self, field: Name) -> bool {
        let holders = self.types.holders.get(&field);
        holders.is_some_and(|all| {
            all.iter().all(|it| {
                let typed = self.types.structure(*it).fields[&field];
                typed.by_value && !typed.is_pointer
            })
        })
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
