//! The reverse of evaluation: what the program calls a byte of memory or a register at a moment.
//!
//! Variables that hold the byte themselves come first; then objects that a pointer of the call
//! leads to (`p->len`), nearest first.

mod within;

use crate::registers::Register;
use crate::scene::{Level, Scene};
use crate::types::{Count, Member, MemberOffset, Shape, TypeRef};
use crate::value::{Held, Home, Value};
use base::{Address, Range};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Pointers followed from a variable in search of a byte.
const FARTHEST: usize = 3;
/// Objects looked at in that search.
const MOST_OBJECTS: usize = 2000;
/// Members and elements descended into to name a byte.
const DEEPEST_PATH: usize = 16;
/// Elements of an array whose pointers are followed.
const MOST_ELEMENTS: u64 = 64;

/// A name for a piece of memory or a register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Naming {
    /// An expression that evaluates to the scalar there.
    pub expression: String,
    /// The bytes of that scalar; `None` in registers.
    pub range: Option<Range>,
    /// How many pointers were followed from a variable.
    pub pointers: usize,
}

impl Scene<'_> {
    /// The names of the byte at `address`, as seen from a call: best first, at most a few.
    #[must_use]
    pub fn names_of(&self, level: Level, address: Address) -> Vec<Naming> {
        let mut search =
            Search { scene: self, address, found: Vec::new(), seen: HashSet::new(), looked: 0 };
        let mut start: Vec<(String, Value)> = Vec::new();
        for local in self.locals(level).into_iter().filter(|local| !local.hidden) {
            let value = self.value_of(&local);
            start.push((local.name, value));
        }
        if let Some(object) = self.program.object_at(address)
            && let Ok(value) = self.evaluate(level, &object.name)
        {
            start.push((object.name, value));
        }
        search.breadth_first(start);
        // Variables of the callers can own the byte too.
        if search.found.is_empty() {
            for call in self.each_call().filter(|call| call.level != level).take(64) {
                let Some(function) = call.function else { continue };
                for object in self.stack_objects(call.level) {
                    if object.range.contains(address)
                        && let Ok(value) = self.evaluate(call.level, &object.name)
                    {
                        search.look(&format!("{function}::{}", object.name), &value, 0);
                    }
                }
            }
        }
        search.found.sort_by_key(|naming| (naming.pointers, naming.expression.len()));
        search.found.dedup_by(|a, b| a.expression == b.expression);
        search.found.truncate(8);
        search.found
    }

    /// The variables of a call that are in a register, wholly or in part.
    #[must_use]
    pub fn names_of_register(&self, level: Level, register: Register) -> Vec<Naming> {
        let mut found = Vec::new();
        for local in self.locals(level) {
            let Held::Pieces(pieces) = self.value_of(&local).held else { continue };
            let inside = |home: &Home| {
                matches!(home, Home::Register { register: own, frame }
                    if *own == register && *frame == level.frame)
            };
            if pieces.iter().any(|piece| inside(&piece.home)) && !local.hidden {
                found.push(Naming { expression: local.name, range: None, pointers: 0 });
            }
        }
        found
    }
}

struct Search<'s, 'a> {
    scene: &'s Scene<'a>,
    address: Address,
    found: Vec<Naming>,
    /// Addresses and types of the objects already looked at.
    seen: HashSet<(Address, TypeRef)>,
    looked: usize,
}

impl Search<'_, '_> {
    /// Looks at values, then at what their pointers lead to, and so on.
    fn breadth_first(&mut self, start: Vec<(String, Value)>) {
        let mut level = start;
        for pointers in 0..=FARTHEST {
            let mut next = Vec::new();
            for (name, value) in &level {
                if self.looked >= MOST_OBJECTS {
                    return;
                }
                self.looked += 1;
                self.look(name, value, pointers);
                self.pointers_in(name, value, &mut next, 4);
            }
            // A nearer name is a better one.
            if !self.found.is_empty() {
                return;
            }
            level = next;
        }
    }

    /// Adds the name of the byte if the value holds it.
    fn look(&mut self, name: &str, value: &Value, pointers: usize) {
        let scene = self.scene;
        let Some(start) = value.held.address() else { return };
        let Some(size) = scene.size_of(value.module, &value.ty) else { return };
        if !Range::new(start.0, size).contains(self.address) {
            return;
        }
        let (expression, range) = self.path(name, value, start, size);
        self.found.push(Naming { expression, range: Some(range), pointers });
    }

    /// Descends to the scalar that has the byte.
    fn path(&self, name: &str, value: &Value, start: Address, size: u64) -> (String, Range) {
        let mut name = name.to_owned();
        let mut at = (value.clone(), start, size);
        for _ in 0..DEEPEST_PATH {
            let (value, start, _) = &at;
            let Some((inner_name, inner)) = self.inside(&name, value, *start) else { break };
            let Some(inner_start) = inner.held.address() else {
                name = inner_name;
                break;
            };
            let Some(inner_size) = self.scene.size_of(inner.module, &inner.ty) else { break };
            name = inner_name;
            at = (inner, inner_start, inner_size);
        }
        (name, Range::new(at.1.0, at.2))
    }

    /// The member or element of a value that has the byte.
    fn inside(&self, name: &str, value: &Value, start: Address) -> Option<(String, Value)> {
        let scene = self.scene;
        let (value, found) = scene.plain(value);
        match &found.shape {
            Shape::Array { .. } => {
                let first = scene.element(&value, 0).ok()??;
                let size = scene.size_of(first.module, &first.ty).filter(|size| *size > 0)?;
                let index = (self.address.0 - start.0) / size;
                let element = scene.element(&value, index.into()).ok()??;
                Some((format!("{name}[{index}]"), element))
            }
            Shape::Record(record) => {
                let variant = scene.active_variant(&value, record).ok().flatten();
                let variant = variant.map(|variant| &variant.members[..]).unwrap_or_default();
                let member = record
                    .members
                    .iter()
                    .chain(variant)
                    .find(|member| self.has_byte(&value, start, member))?;
                let inner = scene.member_value(&value, member).ok()?;
                let name = match &member.name {
                    Some(own) if !member.base => {
                        let own = own.strip_prefix("__").unwrap_or(own);
                        match name.strip_prefix('*') {
                            Some(pointer) => format!("{pointer}->{own}"),
                            None => format!("{name}.{own}"),
                        }
                    }
                    _ => name.to_owned(),
                };
                Some((name, inner))
            }
            _ => None,
        }
    }

    fn has_byte(&self, record: &Value, start: Address, member: &Member) -> bool {
        let MemberOffset::Bits(offset) = member.offset else { return false };
        let size = self.scene.size_of(record.module, &member.ty).unwrap_or(0);
        let bits = member.bits.unwrap_or(size.saturating_mul(8));
        let byte = self.address.0.wrapping_sub(start.0).saturating_mul(8);
        byte < offset.saturating_add(bits) && byte.saturating_add(8) > offset
    }

    /// What the pointers in a value lead to, with names.
    fn pointers_in(
        &mut self,
        name: &str,
        value: &Value,
        next: &mut Vec<(String, Value)>,
        depth: usize,
    ) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let scene = self.scene;
        let (value, found) = scene.plain(value);
        match &found.shape {
            Shape::Pointer { to } | Shape::Reference { to } => {
                let Ok(Some(target)) = scene.dereference(&value) else { return };
                let Some(address) = target.held.address().filter(|at| at.0 != 0) else { return };
                if scene.size_of(target.module, to).is_none() {
                    return;
                }
                if self.seen.insert((address, to.clone())) {
                    next.push((format!("*{}", arrow(name)), target));
                }
            }
            Shape::Record(record) => {
                for member in record.members.iter().take(64) {
                    let Ok(inner) = scene.member_value(&value, member) else { continue };
                    let name = match &member.name {
                        Some(own) if !member.base => match name.strip_prefix('*') {
                            Some(pointer) => format!("{pointer}->{own}"),
                            None => format!("{name}.{own}"),
                        },
                        _ => name.to_owned(),
                    };
                    self.pointers_in(&name, &inner, next, depth);
                }
            }
            Shape::Array { counts, .. } => {
                let Some(Count::Fixed(count)) = counts.first() else { return };
                for index in 0..(*count).min(MOST_ELEMENTS) {
                    let Ok(Some(inner)) = scene.element(&value, index.into()) else { continue };
                    self.pointers_in(&format!("{name}[{index}]"), &inner, next, depth);
                }
            }
            _ => {}
        }
    }
}

/// `*p` before another `*` or a member needs brackets; `p->q` does not.
fn arrow(name: &str) -> String {
    if name.starts_with('*') { format!("({name})") } else { name.to_owned() }
}
