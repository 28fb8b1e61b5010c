//! What functions do to the objects that they are handed or return: which variables they set, and
//! whether they zero, assign or free the whole struct. Both are followed through calls, so that a
//! constructor, or a wrapper around `calloc` or `memset`, is known for what it is.
//!
//! An object is the hash of the expression that names it in a function. Nothing is known of aliases.

use crate::access::{Argument, Call, Function, How, Kind, Whole};
use crate::graph::{FunctionId, Numbers, Variable};
use crate::tree::Tree;
use crate::types::Type;
use rayon::prelude::*;

/// Which object of a function: a parameter by its position, or what is returned.
type Slot = u8;

const RESULT: Slot = Slot::MAX;

/// Calls that an effect is followed through.
const ROUNDS: usize = 4;

/// Most variables that are followed up from one function; what sets more is no helper.
const MOST_SET: usize = 400;

/// The effects of all functions.
pub(crate) struct Objects {
    /// Variables that each function sets in its slots, sorted.
    sets: Vec<Vec<(Slot, Variable)>>,
    /// What each function does to whole structs, by itself or through calls.
    wholes: Vec<Vec<Whole>>,
}

impl Objects {
    pub fn new(tree: &Tree, links: &[Vec<Option<FunctionId>>], numbers: &Numbers) -> Self {
        let functions = &tree.functions;
        let direct = |function: &Function| {
            let writes = function.accesses.iter().filter(|it| it.kind.meets(Kind::WRITE));
            let set = writes.flat_map(|it| {
                let variable = numbers[&(it.owner, it.field)];
                slots(function, it.base).into_iter().flatten().map(move |slot| (slot, variable))
            });
            tidied(set.collect())
        };
        let mut objects = Self {
            sets: functions.par_iter().map(direct).collect(),
            wholes: functions.iter().map(|function| function.wholes.clone()).collect(),
        };
        // Parts share the memory of the struct around them.
        let with_parts = |wholes: &mut Vec<Whole>| {
            for whole in wholes.clone() {
                let Type::Struct(id) = whole.of else { continue };
                let parts = tree.types.with_parts(id).into_iter().skip(1);
                // They have another path than the struct, so they are in no slot.
                wholes.extend(parts.map(|it| Whole { of: Type::Struct(it), base: 0, ..whole }));
            }
        };
        for _ in 0..ROUNDS {
            if !objects.round(functions, links) {
                break;
            }
        }
        objects.wholes.par_iter_mut().for_each(with_parts);
        objects
    }

    /// Hands effects one call up; tells whether anything was new.
    fn round(&mut self, functions: &[Function], links: &[Vec<Option<FunctionId>>]) -> bool {
        let ended: Vec<Vec<(Slot, How)>> =
            functions.par_iter().zip(&self.wholes).map(|(it, wholes)| ends(it, wholes)).collect();
        let next: Vec<_> = (0..functions.len())
            .into_par_iter()
            .map(|id| self.lifted(&functions[id], id, &links[id], &ended))
            .collect();
        let mut is_new = false;
        for (id, (sets, wholes)) in next.into_iter().enumerate() {
            is_new |= sets.len() != self.sets[id].len() || wholes.len() != self.wholes[id].len();
            self.sets[id] = sets;
            self.wholes[id] = wholes;
        }
        is_new
    }

    fn lifted(
        &self,
        function: &Function,
        id: usize,
        links: &[Option<FunctionId>],
        ended: &[Vec<(Slot, How)>],
    ) -> (Vec<(Slot, Variable)>, Vec<Whole>) {
        let (mut sets, mut wholes) = (self.sets[id].clone(), self.wholes[id].clone());
        for (call, callee) in function.calls.iter().zip(links) {
            let Some(callee) = callee.filter(|it| *it as usize != id) else { continue };
            for (slot, how) in &ended[callee as usize] {
                let Some(argument) = handed(call, *slot) else { continue };
                let whole = Whole { of: argument.of, how: *how, base: argument.base };
                if argument.base != 0 && !wholes.contains(&whole) {
                    wholes.push(whole);
                }
            }
            for (slot, variable) in &self.sets[callee as usize] {
                let base = handed(call, *slot).map_or(0, |argument| argument.base);
                let own = slots(function, base).into_iter().flatten();
                sets.extend(own.map(|slot| (slot, *variable)));
            }
        }
        (tidied(sets), wholes)
    }

    /// What a function does to whole structs.
    pub fn wholes(&self, function: FunctionId) -> &[Whole] {
        &self.wholes[function as usize]
    }

    /// Whether a function sets anything in the object that it returns.
    pub fn makes(&self, function: FunctionId) -> bool {
        self.sets[function as usize].iter().any(|(slot, _)| *slot == RESULT)
    }

    /// Whether a function sets a variable in anything that it is handed or returns.
    pub fn sets_any(&self, function: FunctionId, variable: Variable) -> bool {
        self.sets[function as usize].iter().any(|(_, set)| *set == variable)
    }

    /// Whether a call of `callee` sets a variable of the object `base` of the caller.
    pub fn sets(&self, call: &Call, callee: FunctionId, base: u32, variable: Variable) -> bool {
        let sets = &self.sets[callee as usize];
        let is_set = |slot: Slot| sets.binary_search(&(slot, variable)).is_ok();
        let mut arguments = call.arguments.iter().enumerate().take(usize::from(RESULT));
        arguments.any(|(index, it)| it.base == base && is_set(index as Slot))
            || call.result.base == base && is_set(RESULT)
    }
}

/// The parameter that an object is, and whether it is returned.
fn slots(function: &Function, base: u32) -> [Option<Slot>; 2] {
    if base == 0 {
        return [None; 2];
    }
    let parameters = function.parameters.iter().take(usize::from(RESULT));
    let parameter = { parameters }.position(|it| *it == base).map(|it| it as Slot);
    let is_returned = base == Argument::RETURNED || function.returned.contains(&base);
    [parameter, is_returned.then_some(RESULT)]
}

/// What a function does to whole structs in its slots.
fn ends(function: &Function, wholes: &[Whole]) -> Vec<(Slot, How)> {
    let mut ends: Vec<_> = wholes
        .iter()
        .flat_map(|it| slots(function, it.base).into_iter().flatten().map(|slot| (slot, it.how)))
        .collect();
    ends.sort_unstable();
    ends.dedup();
    ends
}

/// What a call hands to a slot of its callee, or gets from it.
fn handed(call: &Call, slot: Slot) -> Option<Argument> {
    if slot == RESULT {
        return Some(call.result);
    }
    call.arguments.get(usize::from(slot)).copied()
}

fn tidied(mut sets: Vec<(Slot, Variable)>) -> Vec<(Slot, Variable)> {
    sets.sort_unstable();
    sets.dedup();
    if sets.len() > MOST_SET {
        sets = Vec::new();
    }
    sets
}
