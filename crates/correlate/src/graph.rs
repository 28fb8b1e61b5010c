//! Links functions by their calls, and gives each its **access set**: its own accesses plus the
//! direct accesses of its callees, one level up, placed at the line of the call.
//!
//! Calls are linked by name: the same file first, then the only function of that name, then the
//! one whose folder is nearest. Calls through pointers stay unlinked.

use crate::access::{Access, Call, Function, How, Kind, Origin, Owner};
use crate::members::Member;
use crate::names::Name;
use crate::objects::Objects;
use crate::sources::is_header;
use crate::tree::Tree;
use crate::types::{self, StructId, Type};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;

/// A variable: a global or a field of a struct, whatever the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variable(pub u32);

/// Number of a function in [`Tree::functions`].
pub type FunctionId = u32;

/// One access in an access set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The variable.
    pub variable: Variable,
    /// Statement in the function; that of the call if it is indirect.
    pub statement: u32,
    /// 0 if direct, else the function called, from 1.
    pub via: u32,
    /// Line; that of the call if it is indirect.
    pub line: u32,
    /// Its branch in the function; that of the call if it is indirect.
    pub branch: u32,
    /// Hash of the expression that names the object.
    pub base: u32,
    /// Whether the object is a global variable, or part of one.
    pub is_global: bool,
    /// Number of its chain of fields in the function; 0 if it is indirect.
    pub chain: u32,
    /// If it is a step on the way to another field: the number of the struct it leads to, from 1.
    pub step: u32,
    /// The same for the struct that the chain ends in.
    pub end: u32,
    /// How.
    pub kind: Kind,
}

/// A step that leads to no struct of the tree.
const STEP_ELSEWHERE: u32 = u32::MAX;

/// The linked tree.
pub struct Graph {
    /// Owner and name of each variable.
    pub variables: Vec<(Owner, Name)>,
    numbers: Numbers,
    /// Where the variables are that are fields of members.
    held: FxHashMap<Variable, Held>,
    /// What functions do to the objects that they are handed or return.
    pub(crate) objects: Objects,
    /// Function that each call of each function leads to.
    pub(crate) links: Vec<Vec<Option<FunctionId>>>,
    /// Access set of each function, by variable, then statement.
    pub sets: Vec<Vec<Entry>>,
    /// Functions that each function calls.
    pub callees: Vec<Vec<FunctionId>>,
    /// Functions that call each function.
    pub callers: Vec<Vec<FunctionId>>,
    /// Functions that are copies of one before: same name, same text.
    pub is_copy: Vec<bool>,
}

/// Most accesses that one call brings up; a callee with more is a dispatcher, not a helper.
const MOST_INDIRECT: usize = 200;

impl Graph {
    /// Links the functions of a tree.
    pub fn new(tree: &Tree) -> Self {
        let (variables, numbers) = number_variables(&tree.functions);
        let held = held(tree, &variables, &numbers);
        let index = Index::new(tree);
        let links: Vec<Vec<Option<FunctionId>>> = tree
            .functions
            .par_iter()
            .map(|from| from.calls.iter().map(|call| index.find(from, call)).collect())
            .collect();
        let direct: Vec<Vec<Entry>> =
            tree.functions.par_iter().map(|it| direct_entries(it, &numbers)).collect();
        let sets = (0..tree.functions.len())
            .into_par_iter()
            .map(|id| access_set(id, &tree.functions[id], &links[id], &direct))
            .collect();
        let callees = distinct(&links);
        let callers = reversed(&callees);
        let objects = Objects::new(tree, &links, &numbers);
        Self {
            variables,
            numbers,
            held,
            objects,
            links,
            sets,
            callees,
            callers,
            is_copy: copies(&tree.functions),
        }
    }

    /// The variable of an access.
    pub fn number(&self, access: &Access) -> Variable {
        self.numbers[&(access.owner, access.field)]
    }

    /// The entries of one variable in the access set of a function.
    pub fn entries(&self, function: FunctionId, variable: Variable) -> &[Entry] {
        let set = &self.sets[function as usize];
        let from = set.partition_point(|entry| entry.variable < variable);
        let length = set[from..].partition_point(|entry| entry.variable == variable);
        &set[from..from + length]
    }

    /// Whether a function accesses a variable itself.
    pub fn accesses_directly(&self, function: FunctionId, variable: Variable) -> bool {
        self.entries(function, variable).iter().any(|entry| entry.via == 0)
    }

    /// How reports name a variable.
    pub fn shown(&self, tree: &Tree, variable: Variable) -> String {
        let (owner, field) = self.variables[variable.0 as usize];
        let field = tree.names.text(field);
        match owner {
            Owner::Struct(id) => format!("{}::{field}", types::shown(&tree.types, &tree.names, id)),
            Owner::Opaque(name) => format!("{}::{field}", tree.names.text(name)),
            Owner::Global => field.to_string(),
            Owner::Static(file) => format!("{field}@{}", tree.types.path(file)),
            Owner::Member(id) => {
                let Member { outer, name, .. } = tree.members.get(id);
                let outer = types::shown(&tree.types, &tree.names, outer);
                format!("{outer}::{}.{field}", tree.names.text(name))
            }
        }
    }

    /// Whether a variable is a field or global of this plain name.
    pub fn is_named(&self, variable: Variable, tree: &Tree, field: &str) -> bool {
        tree.names.text(self.variables[variable.0 as usize].1) == field
    }

    /// How a function sets, zeroes or frees the struct of a variable as a whole, if it does.
    pub fn touches_whole(
        &self,
        tree: &Tree,
        function: FunctionId,
        variable: Variable,
    ) -> Option<How> {
        let of = match self.variables[variable.0 as usize].0 {
            Owner::Struct(id) => Type::Struct(id),
            Owner::Opaque(name) => Type::Opaque(name),
            Owner::Global | Owner::Static(_) => return None,
            Owner::Member(_) if self.touches_member(tree, function, variable) => {
                return Some(How::Assigned);
            }
            Owner::Member(_) => Type::Struct(self.held[&variable].outer),
        };
        let wholes = self.objects.wholes(function).iter().filter(|whole| whole.of == of);
        // Who assigns it after zeroing it has assigned it.
        wholes.map(|whole| whole.how).max()
    }

    /// Whether a function assigns the member whose field a variable is, or gives it to somebody who may set
    /// the variable.
    fn touches_member(&self, tree: &Tree, function: FunctionId, variable: Variable) -> bool {
        let held = self.held[&variable];
        let entries = held.member.map_or(&[][..], |it| self.entries(function, it)).iter();
        let own = || entries.clone().filter(|it| it.via == 0);
        if own().any(|it| it.kind.meets(Kind::WRITE)) {
            return true;
        }
        if !own().any(|it| it.kind.meets(Kind::ADDRESS)) {
            return false;
        }
        let set = self.sets[function as usize].iter().filter(|it| it.via == 0);
        let fields =
            set.filter(|it| self.held.get(&it.variable).is_some_and(|it| it.is_with(held)));
        let bases: Vec<u32> = fields.map(|it| it.base).collect();
        let calls = &tree.functions[function as usize].calls;
        let is_handed =
            |call: &&Call| call.arguments.iter().any(|argument| bases.contains(&argument.base));
        let mut calls =
            calls.iter().zip(&self.links[function as usize]).filter(|it| is_handed(&it.0));
        let sets = |(call, callee): (&Call, &Option<FunctionId>)| {
            let known = callee.filter(|it| !tree.functions[*it as usize].is_macro);
            known.is_none_or(|callee| {
                held.plain.is_none_or(|plain| {
                    bases.iter().any(|base| self.objects.sets(call, callee, *base, plain))
                })
            })
        };
        // Whose address goes elsewhere may be set by anybody.
        calls.clone().next().is_none() || calls.any(sets)
    }

    /// The struct whose field a variable is, as steps number it.
    pub fn struct_number(&self, variable: Variable) -> u32 {
        struct_number(self.variables[variable.0 as usize].0)
    }
}

/// A member of a struct counts as a struct of its own.
fn struct_number(owner: Owner) -> u32 {
    const MEMBER: u32 = 1 << 31;
    match owner {
        Owner::Struct(id) => id.0 + 1,
        Owner::Member(id) => id.0 | MEMBER,
        Owner::Opaque(_) | Owner::Global | Owner::Static(_) => 0,
    }
}

/// Where a variable is that is a field of a member of a struct.
#[derive(Clone, Copy)]
struct Held {
    /// The member, if it is accessed itself.
    member: Option<Variable>,
    /// The struct around it.
    outer: StructId,
    /// The same field of objects that are no members, if it is accessed.
    plain: Option<Variable>,
}

impl Held {
    fn is_with(self, other: Self) -> bool {
        self.member.is_some() && self.member == other.member
    }
}

fn held(tree: &Tree, variables: &[(Owner, Name)], numbers: &Numbers) -> FxHashMap<Variable, Held> {
    let found = |(number, (owner, field)): (usize, &(Owner, Name))| {
        let Owner::Member(id) = *owner else { return None };
        let Member { outer, name, inner } = tree.members.get(id);
        let known = |owner, field| numbers.get(&(Owner::Struct(owner), field)).copied();
        let held = Held { member: known(outer, name), outer, plain: known(inner, *field) };
        Some((Variable(number as u32), held))
    };
    variables.iter().enumerate().filter_map(found).collect()
}

pub(crate) type Numbers = FxHashMap<(Owner, Name), Variable>;

/// Numbers variables in order of their first access, which is the same in every run.
fn number_variables(functions: &[Function]) -> (Vec<(Owner, Name)>, Numbers) {
    let mut variables = Vec::new();
    let mut numbers = Numbers::default();
    for access in functions.iter().flat_map(|function| &function.accesses) {
        numbers.entry((access.owner, access.field)).or_insert_with(|| {
            variables.push((access.owner, access.field));
            Variable(variables.len() as u32 - 1)
        });
    }
    (variables, numbers)
}

fn direct_entries(function: &Function, numbers: &Numbers) -> Vec<Entry> {
    let mut ends: FxHashMap<u32, u32> = FxHashMap::default();
    for access in function.accesses.iter().filter(|it| it.step.is_none()) {
        let number = struct_number(access.owner);
        if number != 0 {
            ends.insert(access.chain, number);
        }
    }
    let mut entries: Vec<Entry> = function
        .accesses
        .iter()
        .map(|access| Entry {
            variable: numbers[&(access.owner, access.field)],
            statement: access.statement,
            via: 0,
            line: access.line,
            branch: access.branch,
            base: access.base,
            is_global: access.origin == Origin::Global,
            chain: access.chain,
            step: access.step.map_or(0, |to| match to {
                Type::Struct(id) => id.0 + 1,
                _ => STEP_ELSEWHERE,
            }),
            end: access.step.map_or(0, |_| ends.get(&access.chain).copied().unwrap_or(0)),
            kind: access.kind,
        })
        .collect();
    tidy(&mut entries);
    entries
}

/// Sorts by variable and statement, and joins what is the same but for its kind.
fn tidy(entries: &mut Vec<Entry>) {
    // Chains matter for steps alone: of other accesses those to one object are the same.
    let key = |it: &Entry| {
        let chain = if it.step == 0 { 0 } else { it.chain };
        (it.variable, it.statement, it.via, it.base, it.branch, it.step, it.end, chain)
    };
    entries.sort_by_key(key);
    entries.dedup_by(|later, kept| {
        let same = key(later) == key(kept);
        if same {
            kept.kind |= later.kind;
        }
        same
    });
    entries.shrink_to_fit();
}

fn access_set(
    id: usize,
    function: &Function,
    links: &[Option<FunctionId>],
    direct: &[Vec<Entry>],
) -> Vec<Entry> {
    let mut set = direct[id].clone();
    let mut seen = FxHashSet::default();
    for (call, callee) in function.calls.iter().zip(links) {
        let Some(callee) = callee.filter(|callee| *callee as usize != id) else { continue };
        // The same callee called twice in a statement brings nothing new.
        if !seen.insert((callee, call.statement)) || direct[callee as usize].len() > MOST_INDIRECT {
            continue;
        }
        let mut brought: Vec<Entry> = direct[callee as usize]
            .iter()
            .map(|entry| Entry {
                statement: call.statement,
                via: callee + 1,
                line: call.line,
                branch: call.branch,
                base: 0,
                is_global: false,
                chain: 0,
                step: 0,
                end: 0,
                ..*entry
            })
            .collect();
        tidy(&mut brought);
        set.append(&mut brought);
    }
    tidy(&mut set);
    set
}

fn distinct(links: &[Vec<Option<FunctionId>>]) -> Vec<Vec<FunctionId>> {
    let distinct = |list: &Vec<Option<FunctionId>>| {
        let mut known: Vec<_> = list.iter().flatten().copied().collect();
        known.sort_unstable();
        known.dedup();
        known
    };
    links.par_iter().map(distinct).collect()
}

fn reversed(callees: &[Vec<FunctionId>]) -> Vec<Vec<FunctionId>> {
    let mut callers = vec![Vec::new(); callees.len()];
    for (from, list) in callees.iter().enumerate() {
        for to in list.iter().filter(|to| **to as usize != from) {
            callers[*to as usize].push(from as FunctionId);
        }
    }
    callers
}

fn copies(functions: &[Function]) -> Vec<bool> {
    let mut seen = FxHashSet::default();
    functions.iter().map(|it| !seen.insert((it.name, it.class, it.hash))).collect()
}

/// Functions by name.
struct Index<'a> {
    tree: &'a Tree,
    by_name: FxHashMap<Name, Vec<FunctionId>>,
    is_header: Vec<bool>,
}

impl<'a> Index<'a> {
    fn new(tree: &'a Tree) -> Self {
        let mut by_name: FxHashMap<Name, Vec<FunctionId>> = FxHashMap::default();
        for (id, function) in tree.functions.iter().enumerate() {
            by_name.entry(function.name).or_default().push(id as FunctionId);
        }
        let is_header = tree.paths.iter().map(|path| is_header(Path::new(path))).collect();
        Self { tree, by_name, is_header }
    }

    fn find(&self, from: &Function, call: &crate::access::Call) -> Option<FunctionId> {
        let candidates = self.by_name.get(&call.name)?;
        let of = |id: &FunctionId| &self.tree.functions[*id as usize];
        let fits = |id: &&FunctionId| call.class.is_none() || of(id).class == call.class;
        if let Some(own) = candidates.iter().filter(fits).find(|id| of(id).file == from.file) {
            return Some(*own);
        }
        let path = |file: u32| self.tree.paths[file as usize].split('/');
        let shared = |id: &&FunctionId| {
            path(of(id).file).zip(path(from.file)).take_while(|(a, b)| a == b).count()
        };
        candidates
            .iter()
            .filter(fits)
            .filter(|id| !of(id).is_static || self.is_header[of(id).file as usize])
            // `max_by_key` takes the last of equals; reversed, the first in file order.
            .rev()
            .max_by_key(shared)
            .copied()
    }
}
