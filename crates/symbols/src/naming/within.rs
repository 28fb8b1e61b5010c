//! Names for a byte of a block of memory of which only pointers tell: an element of an array on the heap, whose
//! extent no type says.

use super::{FARTHEST, MOST_OBJECTS, Naming, Search};
use crate::scene::{Level, Scene};
use crate::value::{Held, Value};
use base::{Address, Range};
use std::collections::HashSet;

/// Static variables that are looked at.
const MOST_STATICS: usize = 4000;

impl Scene<'_> {
    /// A name for the byte at `address` of the block `within`, which some variable of the call, or else a
    /// static one of its module, leads to: best first.
    #[must_use]
    pub fn names_within(&self, level: Level, address: Address, within: Range) -> Vec<Naming> {
        let locals = self.locals(level).into_iter().filter(|local| !local.hidden);
        let locals = locals.map(|local| (local.name.clone(), self.value_of(&local)));
        let found = self.lead_to(locals.collect(), address, within);
        if found.is_empty() { self.lead_to(self.statics(level), address, within) } else { found }
    }

    fn statics(&self, level: Level) -> Vec<(String, Value)> {
        let frame = self.frame(level.frame);
        let module = frame.and_then(|frame| self.program.locate(frame.pc)).map(|(_, index)| index);
        let objects = module.map(|module| self.program.objects(module)).unwrap_or_default();
        let value = |name: String| Some((name.clone(), self.evaluate(level, &name).ok()?));
        let small =
            objects.into_iter().filter(|object| object.range.end.0 - object.range.start.0 <= 4096);
        small.take(MOST_STATICS).filter_map(|object| value(object.name)).collect()
    }

    fn lead_to(&self, start: Vec<(String, Value)>, address: Address, within: Range) -> Vec<Naming> {
        let mut search =
            Search { scene: self, address, found: Vec::new(), seen: HashSet::new(), looked: 0 };
        let mut level = start;
        for pointers in 1..=FARTHEST {
            let mut next = Vec::new();
            for (name, value) in &level {
                search.looked += 1;
                if search.looked < MOST_OBJECTS {
                    search.pointers_in(name, value, &mut next, 4);
                }
            }
            for (name, target) in &next {
                search.found.extend(search.element_at(name, target, within, pointers));
            }
            if !search.found.is_empty() {
                break;
            }
            level = next;
        }
        let mut found = search.found;
        found.sort_by_key(|naming| naming.expression.len());
        found
    }
}

impl Search<'_, '_> {
    /// The element that has the byte, if what a pointer leads to is in the block.
    fn element_at(
        &self,
        name: &str,
        target: &Value,
        within: Range,
        pointers: usize,
    ) -> Option<Naming> {
        let first = target.held.address().filter(|at| within.contains(*at))?;
        let size = self.scene.size_of(target.module, &target.ty).filter(|size| *size > 0)?;
        let index = self.address.0.checked_sub(first.0)? / size;
        let start = Address(first.0 + index * size);
        let held = Held::Memory(start);
        let element = Value { module: target.module, ty: target.ty.clone(), held };
        let name = match (index, name.strip_prefix('*')) {
            (1.., Some(pointer)) => format!("{pointer}[{index}]"),
            _ => name.to_owned(),
        };
        let (expression, range) = self.path(&name, &element, start, size);
        Some(Naming { expression, range: Some(range), pointers })
    }
}
