//! The units of a module's debug information, from all the files it is spread over, and the
//! references between their entries.
//!
//! Units come in **groups**, one for each set of sections: the module's own, the alternate file's
//! (dwz), and one for every split unit. A unit is parsed when first asked for. A reference that
//! leads nowhere is `None`: broken debug information makes answers poorer, never wrong.

use crate::debug_info::{Attribute, DebugInfo, Dwarf, Entry, Reader, Unit, text};
use gimli::{DwAt, Reader as _, UnitOffset, UnitSectionOffset, constants as dw};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// References followed from one entry before they are taken for a loop.
const LONGEST_CHAIN: usize = 8;

/// A unit: its group, and its place in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct UnitId {
    group: u32,
    index: u32,
}

/// An entry of the debug information of one module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct EntryId {
    pub(crate) unit: UnitId,
    pub(crate) offset: usize,
}

/// A parsed unit with the sections it refers to.
pub(crate) struct LoadedUnit {
    pub id: UnitId,
    pub dwarf: Arc<Dwarf>,
    pub unit: Unit,
    /// The unit in the program's own file that a split unit belongs to.
    pub skeleton: Option<Arc<LoadedUnit>>,
    pub language: Option<gimli::DwLang>,
}

struct Group {
    dwarf: Arc<Dwarf>,
    slots: Vec<Slot>,
    /// Type units by signature.
    signatures: HashMap<u64, u32>,
    skeleton: Option<Arc<LoadedUnit>>,
}

struct Slot {
    header: gimli::UnitHeader<Reader>,
    loaded: OnceLock<Option<Arc<LoadedUnit>>>,
    /// For a skeleton: the split unit with the contents.
    split: OnceLock<Option<Arc<LoadedUnit>>>,
}

/// All units of a module.
pub(crate) struct Units {
    groups: RwLock<Vec<Arc<Group>>>,
    alternate: Option<u32>,
}

const OWN: u32 = 0;

impl Units {
    pub fn of(dwarf: &Arc<Dwarf>) -> Self {
        let mut groups = vec![Arc::new(Group::new(dwarf.clone(), None))];
        let alternate = dwarf.sup.as_ref().map(|dwarf| {
            groups.push(Arc::new(Group::new(dwarf.clone(), None)));
            1
        });
        Self { groups: RwLock::new(groups), alternate }
    }

    /// The units of the program's own file and of the alternate file.
    pub fn own_and_alternate(&self) -> Vec<UnitId> {
        let numbers = [Some(OWN), self.alternate].into_iter().flatten();
        let units = |group| {
            let count = self.group(group).map_or(0, |found| found.slots.len() as u32);
            (0..count).map(move |index| UnitId { group, index })
        };
        numbers.flat_map(units).collect()
    }

    fn group(&self, number: u32) -> Option<Arc<Group>> {
        let groups = self.groups.read().unwrap_or_else(PoisonError::into_inner);
        groups.get(number as usize).cloned()
    }

    fn add(&self, group: Group) -> u32 {
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        groups.push(Arc::new(group));
        (groups.len() - 1) as u32
    }
}

impl DebugInfo {
    /// The compilation units of the program, split ones standing in for their skeletons.
    pub fn compilation_units(&self) -> impl Iterator<Item = Arc<LoadedUnit>> + '_ {
        (0..self.unit_count()).filter_map(|index| self.full(UnitId { group: OWN, index }))
    }

    /// How many units the program's own file has.
    pub fn unit_count(&self) -> u32 {
        self.units.group(OWN).map_or(0, |group| group.slots.len() as u32)
    }

    /// The unit at a place in the program's own file; the skeleton itself for split units.
    pub fn own_unit(&self, index: u32) -> Option<Arc<LoadedUnit>> {
        self.unit(UnitId { group: OWN, index })
    }

    /// The unit with the contents: the split one if `id` is a skeleton whose file is found.
    pub fn full(&self, id: UnitId) -> Option<Arc<LoadedUnit>> {
        let unit = self.unit(id)?;
        if id.group != OWN || unit.unit.dwo_id.is_none() {
            return Some(unit);
        }
        let group = self.units.group(OWN)?;
        let slot = group.slots.get(id.index as usize)?;
        let split = slot.split.get_or_init(|| self.split_of(&unit));
        split.clone().or(Some(unit))
    }

    pub fn unit(&self, id: UnitId) -> Option<Arc<LoadedUnit>> {
        let group = self.units.group(id.group)?;
        let slot = group.slots.get(id.index as usize)?;
        slot.loaded.get_or_init(|| group.load(id, slot)).clone()
    }

    /// The entry with that id and its unit.
    pub fn entry(&self, id: EntryId) -> Option<(Arc<LoadedUnit>, Entry)> {
        let unit = self.unit(id.unit)?;
        let entry = unit.unit.entry(UnitOffset(id.offset)).ok()?;
        (!entry.is_null()).then_some((unit, entry))
    }

    /// The entry that an attribute of `unit` refers to.
    pub fn follow(&self, unit: &LoadedUnit, value: &Attribute) -> Option<EntryId> {
        match value {
            Attribute::UnitRef(offset) => Some(EntryId { unit: unit.id, offset: offset.0 }),
            Attribute::DebugInfoRef(offset) => self.at(unit.id.group, offset.0),
            Attribute::DebugInfoRefSup(offset) => self.at(self.units.alternate?, offset.0),
            Attribute::DebugTypesRef(signature) => self.type_unit(unit, signature.0),
            _ => None,
        }
    }

    /// The value of the first of `names` that `id` has, itself or through the entries that it is
    /// an instance or a completion of; with the unit that the value belongs to.
    pub fn attribute(&self, id: EntryId, names: &[DwAt]) -> Option<(Arc<LoadedUnit>, Attribute)> {
        let (unit, _, value) = self.attribute_at(id, names)?;
        Some((unit, value))
    }

    /// The same, with the entry that has the value.
    pub fn attribute_at(
        &self,
        id: EntryId,
        names: &[DwAt],
    ) -> Option<(Arc<LoadedUnit>, EntryId, Attribute)> {
        let mut at = id;
        for _ in 0..LONGEST_CHAIN {
            let (unit, entry) = self.entry(at)?;
            if let Some(value) = names.iter().find_map(|name| entry.attr_value(*name)) {
                return Some((unit, at, value));
            }
            at = self.origin(&unit, &entry)?;
        }
        None
    }

    /// The entry that `entry` is an instance or a completion of.
    pub fn origin(&self, unit: &LoadedUnit, entry: &Entry) -> Option<EntryId> {
        let value = entry
            .attr_value(dw::DW_AT_abstract_origin)
            .or_else(|| entry.attr_value(dw::DW_AT_specification))?;
        self.follow(unit, &value)
    }

    /// The entry at an offset of the section that `group` has.
    fn at(&self, group: u32, offset: usize) -> Option<EntryId> {
        let found = self.units.group(group)?;
        let end = found.slots.partition_point(|slot| slot.start() <= offset);
        let index = end.checked_sub(1)?;
        let slot = &found.slots[index];
        let offset = UnitSectionOffset(offset).to_unit_offset(&slot.header)?;
        let unit = UnitId { group, index: index as u32 };
        Some(EntryId { unit, offset: offset.0 })
    }

    pub fn at_own(&self, unit: &LoadedUnit, offset: usize) -> Option<EntryId> {
        self.at(unit.id.group, offset)
    }

    fn type_unit(&self, from: &LoadedUnit, signature: u64) -> Option<EntryId> {
        let in_group = |number: u32| {
            let group = self.units.group(number)?;
            let index = *group.signatures.get(&signature)?;
            let (gimli::UnitType::Type { type_offset, .. }
            | gimli::UnitType::SplitType { type_offset, .. }) =
                group.slots.get(index as usize)?.header.type_()
            else {
                return None;
            };
            Some(EntryId { unit: UnitId { group: number, index }, offset: type_offset.0 })
        };
        if let Some(found) = in_group(from.id.group).or_else(|| in_group(OWN)) {
            return Some(found);
        }
        // In a package, a type unit has sections of its own.
        let package = self.package()?;
        let dwarf = package.find_tu(gimli::DebugTypeSignature(signature), &self.dwarf).ok()??;
        in_group(self.units.add(Group::new(Arc::new(dwarf), from.skeleton.clone())))
    }

    fn split_of(&self, skeleton: &Arc<LoadedUnit>) -> Option<Arc<LoadedUnit>> {
        let unit = &skeleton.unit;
        let name = unit.dwo_name().ok()??;
        let name = text(&skeleton.dwarf.attr_string(unit, name).ok()?);
        let folder = unit.comp_dir.as_ref().and_then(text);
        let dwarf = self.split(unit.dwo_id?, folder.as_deref(), name.as_deref())?;
        let number = self.units.add(Group::new(dwarf, Some(skeleton.clone())));
        let group = self.units.group(number)?;
        (0..group.slots.len() as u32).find_map(|index| {
            let found = self.unit(UnitId { group: number, index })?;
            (found.unit.dwo_id == unit.dwo_id).then_some(found)
        })
    }
}

impl Group {
    fn new(dwarf: Arc<Dwarf>, skeleton: Option<Arc<LoadedUnit>>) -> Self {
        let mut slots = Vec::new();
        let mut signatures = HashMap::new();
        let info = dwarf.units().map_while(Result::ok);
        for header in info.chain(dwarf.type_units().map_while(Result::ok)) {
            if let gimli::UnitType::Type { type_signature, .. }
            | gimli::UnitType::SplitType { type_signature, .. } = header.type_()
            {
                signatures.insert(type_signature.0, slots.len() as u32);
            }
            slots.push(Slot { header, loaded: OnceLock::new(), split: OnceLock::new() });
        }
        Self { dwarf, slots, signatures, skeleton }
    }

    fn load(&self, id: UnitId, slot: &Slot) -> Option<Arc<LoadedUnit>> {
        let mut unit = self.dwarf.unit(slot.header.clone()).ok()?;
        if let Some(skeleton) = &self.skeleton {
            unit.copy_relocated_attributes(&skeleton.unit);
        }
        let language =
            match unit.entry(unit.header.root_offset()).ok()?.attr_value(dw::DW_AT_language) {
                Some(Attribute::Language(language)) => Some(language),
                _ => None,
            };
        let dwarf = self.dwarf.clone();
        Some(Arc::new(LoadedUnit { id, dwarf, unit, skeleton: self.skeleton.clone(), language }))
    }
}

impl Slot {
    /// Units of `.debug_types` have offsets of their own section: they sort last, and only their
    /// signatures lead to them.
    fn start(&self) -> usize {
        match self.header.debug_info_offset() {
            Some(offset) => offset.0,
            None => usize::MAX,
        }
    }
}

/// An entry met in a pass over a unit.
pub(crate) struct Met<'a> {
    pub id: EntryId,
    /// How deep it is; the unit itself is at 0.
    pub depth: isize,
    /// Its attributes, if they were wanted.
    pub entry: Option<&'a Entry>,
}

impl LoadedUnit {
    /// Visits every entry in order. Attributes are read only of `wanted` ones, which makes a pass
    /// over everything cheap. Ends early where the unit is broken.
    pub fn visit(&self, wanted: impl Fn(gimli::DwTag) -> bool, mut each: impl FnMut(Met<'_>)) {
        let Ok(mut entries) = self.unit.entries_raw(None) else { return };
        let mut entry = Entry::null();
        while !entries.is_empty() {
            let (offset, depth) = (entries.next_offset(), entries.next_depth());
            let Ok(abbreviation) = entries.read_abbreviation() else { return };
            let Some(abbreviation) = abbreviation else { continue };
            let id = EntryId { unit: self.id, offset: offset.0 };
            let read = wanted(abbreviation.tag());
            if read {
                let again = self.unit.entries_raw(Some(offset));
                if !again.is_ok_and(|mut again| again.read_entry(&mut entry).is_ok()) {
                    return;
                }
            }
            each(Met { id, depth, entry: read.then_some(&entry) });
            if entries.skip_attributes(abbreviation.attributes()).is_err() {
                return;
            }
        }
    }

    pub fn string(&self, value: Attribute) -> Option<String> {
        let reader = self.dwarf.attr_string(&self.unit, value).ok()?;
        Some(reader.to_string_lossy().ok()?.into_owned())
    }

    pub fn name(&self, entry: &Entry) -> Option<String> {
        self.string(entry.attr_value(dw::DW_AT_name)?)
    }

    /// The code of an entry, as half-open ranges.
    pub fn ranges(&self, entry: &Entry) -> Vec<(u64, u64)> {
        /// More ranges than any function has; broken lists are endless.
        const MOST: usize = 1 << 16;
        let Ok(ranges) = self.dwarf.die_ranges(&self.unit, entry) else { return Vec::new() };
        ranges
            .take(MOST)
            .map_while(Result::ok)
            .filter(|range| range.begin < range.end)
            .map(|range| (range.begin, range.end))
            .collect()
    }

    pub fn is_rust(&self) -> bool {
        self.language == Some(dw::DW_LANG_Rust)
    }

    pub fn is_cpp(&self) -> bool {
        matches!(
            self.language,
            Some(
                dw::DW_LANG_C_plus_plus
                    | dw::DW_LANG_C_plus_plus_03
                    | dw::DW_LANG_C_plus_plus_11
                    | dw::DW_LANG_C_plus_plus_14
                    | dw::DW_LANG_C_plus_plus_17
                    | dw::DW_LANG_C_plus_plus_20
            )
        )
    }
}
