//! Types as the debug information describes them: sizes, members, elements, variants.
//!
//! A [`Type`] describes one level; what it points to or contains is a [`TypeRef`], resolved when
//! asked for, so that recursive types are no problem.

use crate::debug_info::{Attribute, DebugInfo, Entry};
use crate::units::{EntryId, LoadedUnit};
use gimli::{UnitOffset, constants as dw};
use std::sync::Arc;

/// A type of one module, or one made up by an expression.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TypeRef {
    /// A type in the module's debug information.
    Entry(EntryId),
    /// No type: what a `void *` points to.
    Void,
    /// A machine integer.
    Integer {
        /// Bytes.
        size: u64,
        /// Whether it has a sign.
        signed: bool,
    },
    /// A floating-point number of so many bytes.
    Float(u64),
    /// A pointer to a type.
    Pointer(Arc<TypeRef>),
    /// So many of a type.
    Array(Arc<TypeRef>, u64),
}

impl TypeRef {
    /// A pointer to this type.
    #[must_use]
    pub fn pointer(self) -> Self {
        Self::Pointer(Arc::new(self))
    }

    /// So many of this type.
    #[must_use]
    pub fn array(self, count: u64) -> Self {
        Self::Array(Arc::new(self), count)
    }

    /// One byte without a sign.
    pub const BYTE: Self = Self::Integer { size: 1, signed: false };
    /// Eight bytes with a sign: what literals and differences are.
    pub const LONG: Self = Self::Integer { size: 8, signed: true };
    /// Four bytes with a sign: what comparisons yield.
    pub const INT: Self = Self::Integer { size: 4, signed: true };
    /// Eight bytes without a sign: what registers hold.
    pub const WORD: Self = Self::Integer { size: 8, signed: false };
}

/// One level of a type.
#[derive(Clone, Debug)]
pub struct Type {
    /// Its name without `struct` and the like; pointers and arrays have none.
    pub name: Option<String>,
    /// Its size in bytes, if complete.
    pub size: Option<u64>,
    /// What it is.
    pub shape: Shape,
    /// Whether it was declared in Rust.
    pub rust: bool,
}

/// What a type is.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Nothing.
    Void,
    /// A whole number.
    Integer {
        /// Whether it has a sign.
        signed: bool,
    },
    /// True or false.
    Boolean,
    /// A character, of C if one byte, of Unicode if more.
    Character {
        /// Whether it has a sign.
        signed: bool,
    },
    /// A floating-point number.
    Float,
    /// A pointer.
    Pointer {
        /// What it points to.
        to: TypeRef,
    },
    /// A C++ reference.
    Reference {
        /// What it refers to.
        to: TypeRef,
    },
    /// An array.
    Array {
        /// What it holds.
        element: TypeRef,
        /// How many, outermost dimension first.
        counts: Vec<Count>,
    },
    /// A structure, class or union.
    Record(Box<Record>),
    /// Named numbers.
    Enumeration {
        /// Whether the numbers have a sign.
        signed: bool,
        /// The names, in the order of declaration.
        names: Vec<(String, i128)>,
    },
    /// Another name for a type, or a type with a qualifier.
    Alias {
        /// The type itself.
        to: TypeRef,
        /// `const`, `volatile` and the like; empty for a `typedef`.
        qualifier: &'static str,
    },
    /// Code.
    Function {
        /// What it returns.
        returns: TypeRef,
        /// What it takes.
        parameters: Vec<TypeRef>,
    },
    /// Something this crate does not know.
    Unknown,
}

/// How many elements a dimension of an array has.
#[derive(Clone, Debug)]
pub enum Count {
    /// A fixed number.
    Fixed(u64),
    /// A number that only a frame tells: the entry of a variable, or an expression.
    Dynamic(Bound),
    /// The debug information does not say.
    Unknown,
}

/// Where the highest index of an array is found while the program runs.
#[derive(Clone, Debug)]
pub struct Bound {
    pub(crate) value: Attribute,
    pub(crate) unit: EntryId,
    pub(crate) is_count: bool,
}

/// A structure, class or union.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The word before its name in C: `struct` or `union`; empty in other languages.
    pub keyword: &'static str,
    /// Whether the members share their place.
    pub union: bool,
    /// Whether only the name is known here.
    pub declaration: bool,
    /// The members, bases first where the compiler puts them first.
    pub members: Vec<Member>,
    /// For a Rust enum: which members are there depends on a value.
    pub variants: Option<Variants>,
    /// The types that a generic record was made for, by the names of its parameters.
    pub arguments: Vec<(String, TypeRef)>,
}

/// A member of a record.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name; anonymous structures and unions have none.
    pub name: Option<String>,
    /// Its type.
    pub ty: TypeRef,
    /// Where it is, in bits from the start of the record.
    pub offset: MemberOffset,
    /// Its size in bits, for bit-fields.
    pub bits: Option<u64>,
    /// Whether it is a base class.
    pub base: bool,
    /// Whether the compiler made it up.
    pub artificial: bool,
}

/// Where a member is in its record.
#[derive(Clone, Debug)]
pub enum MemberOffset {
    /// So many bits from the start.
    Bits(u64),
    /// To be computed from the record's address: a virtual base.
    Computed(Bound),
}

/// The variants of a Rust enum.
#[derive(Clone, Debug)]
pub struct Variants {
    /// The member that tells which variant is there; `None` if there is just one.
    pub discriminant: Option<Member>,
    /// Whether the discriminant has a sign.
    pub variants: Vec<Variant>,
}

/// One variant of a Rust enum.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The discriminants that select it, each from and up to and including; empty for the one
    /// that is there when no other is.
    pub values: Vec<(u64, u64)>,
    /// What it holds.
    pub members: Vec<Member>,
}

impl DebugInfo {
    /// The type at `entry`.
    pub fn entry_type(&self, entry: EntryId) -> Arc<Type> {
        self.caches.types.get(entry, || Reading::new(self, entry).unwrap_or_else(unknown))
    }

    /// The type that the entry's `DW_AT_type` names, itself or through its origin.
    pub fn type_of(&self, entry: EntryId) -> TypeRef {
        let found = self.attribute(entry, &[dw::DW_AT_type]);
        let target = found.and_then(|(unit, value)| self.follow(&unit, &value));
        target.map_or(TypeRef::Void, TypeRef::Entry)
    }
}

fn unknown() -> Type {
    Type { name: None, size: None, shape: Shape::Unknown, rust: false }
}

/// A type being read from its entry.
struct Reading<'a> {
    debug: &'a DebugInfo,
    unit: Arc<LoadedUnit>,
    entry: Entry,
    id: EntryId,
}

impl Reading<'_> {
    #[expect(clippy::new_ret_no_self, reason = "the reading is only a step to the type")]
    fn new(debug: &DebugInfo, id: EntryId) -> Option<Type> {
        let (mut unit, mut entry) = debug.entry(id)?;
        let mut id = id;
        // A declaration that stands in for a type unit.
        if let Some(signature) = entry.attr_value(dw::DW_AT_signature)
            && let Some(target) = debug.follow(&unit, &signature)
        {
            id = target;
            (unit, entry) = debug.entry(id)?;
        }
        Reading { debug, unit, entry, id }.read()
    }

    fn read(&self) -> Option<Type> {
        let to = || self.target(&self.entry);
        let alias = |qualifier| Shape::Alias { to: to(), qualifier };
        let shape = match self.entry.tag() {
            dw::DW_TAG_base_type | dw::DW_TAG_subrange_type => self.base(),
            dw::DW_TAG_pointer_type => Shape::Pointer { to: to() },
            dw::DW_TAG_reference_type | dw::DW_TAG_rvalue_reference_type => {
                Shape::Reference { to: to() }
            }
            dw::DW_TAG_typedef => alias(""),
            dw::DW_TAG_const_type => alias("const"),
            dw::DW_TAG_volatile_type => alias("volatile"),
            dw::DW_TAG_restrict_type => alias("restrict"),
            dw::DW_TAG_atomic_type => alias("_Atomic"),
            dw::DW_TAG_array_type => self.array(),
            dw::DW_TAG_enumeration_type => self.enumeration(),
            dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_interface_type => {
                Shape::Record(Box::new(self.record(false)))
            }
            dw::DW_TAG_union_type => Shape::Record(Box::new(self.record(true))),
            dw::DW_TAG_subroutine_type | dw::DW_TAG_subprogram => self.function(),
            dw::DW_TAG_ptr_to_member_type => Shape::Integer { signed: true },
            dw::DW_TAG_unspecified_type => Shape::Void,
            _ => return None,
        };
        let size = self.number(&self.entry, dw::DW_AT_byte_size).or(match shape {
            Shape::Pointer { .. } | Shape::Reference { .. } => Some(8),
            _ if self.entry.tag() == dw::DW_TAG_ptr_to_member_type => Some(8),
            _ => None,
        });
        let rust = self.unit.is_rust();
        Some(Type { name: self.unit.name(&self.entry), size, shape, rust })
    }

    fn base(&self) -> Shape {
        let encoding = match self.entry.attr_value(dw::DW_AT_encoding) {
            Some(Attribute::Encoding(encoding)) => encoding,
            _ => dw::DW_ATE_unsigned,
        };
        match encoding {
            dw::DW_ATE_boolean => Shape::Boolean,
            dw::DW_ATE_signed_char => Shape::Character { signed: true },
            dw::DW_ATE_unsigned_char if self.unit.is_rust() => Shape::Integer { signed: false },
            dw::DW_ATE_unsigned_char | dw::DW_ATE_UTF => Shape::Character { signed: false },
            dw::DW_ATE_float => Shape::Float,
            dw::DW_ATE_signed => Shape::Integer { signed: true },
            dw::DW_ATE_unsigned | dw::DW_ATE_address => Shape::Integer { signed: false },
            _ => Shape::Unknown,
        }
    }

    fn array(&self) -> Shape {
        let mut counts = Vec::new();
        self.children(|child| {
            if child.tag() == dw::DW_TAG_subrange_type {
                counts.push(self.count(child));
            }
        });
        Shape::Array { element: self.target(&self.entry), counts }
    }

    fn count(&self, range: &Entry) -> Count {
        let low = range.attr_value(dw::DW_AT_lower_bound).and_then(bound).unwrap_or(0);
        let (value, is_count) = match range.attr(dw::DW_AT_count) {
            Some(count) => (count, true),
            None => match range.attr(dw::DW_AT_upper_bound) {
                Some(upper) => (upper, false),
                None => return Count::Unknown,
            },
        };
        match bound(value.value()) {
            Some(number) => {
                let count = if is_count { number } else { number - low + 1 };
                Count::Fixed(u64::try_from(count).unwrap_or(0))
            }
            None => Count::Dynamic(Bound { value: value.value(), unit: self.id, is_count }),
        }
    }

    fn enumeration(&self) -> Shape {
        let mut names = Vec::new();
        let mut signed = false;
        self.children(|child| {
            let Some(value) = child.attr_value(dw::DW_AT_const_value) else { return };
            let signed_form = matches!(value, Attribute::Sdata(_));
            let number = match (value.sdata_value(), value.udata_value()) {
                (Some(number), _) if signed_form => i128::from(number),
                (_, Some(number)) => i128::from(number),
                (Some(number), None) => i128::from(number),
                _ => return,
            };
            signed |= number < 0;
            if let Some(name) = self.unit.name(child) {
                names.push((name, number));
            }
        });
        if let TypeRef::Entry(of) = self.target(&self.entry)
            && let Shape::Integer { signed: true } = self.debug.entry_type(of).shape
        {
            signed = true;
        }
        Shape::Enumeration { signed, names }
    }

    fn function(&self) -> Shape {
        let mut parameters = Vec::new();
        self.children(|child| {
            if child.tag() == dw::DW_TAG_formal_parameter {
                parameters.push(self.target(child));
            }
        });
        Shape::Function { returns: self.target(&self.entry), parameters }
    }

    fn record(&self, union: bool) -> Record {
        let c = !self.unit.is_cpp() && !self.unit.is_rust();
        let mut record = Record {
            keyword: match (c, union) {
                (false, _) => "",
                (true, false) => "struct",
                (true, true) => "union",
            },
            union,
            declaration: self.entry.has_attr(dw::DW_AT_declaration),
            ..Record::default()
        };
        let mut variant_part = None;
        self.children(|child| match child.tag() {
            dw::DW_TAG_member | dw::DW_TAG_inheritance => record.members.extend(self.member(child)),
            dw::DW_TAG_variant_part => variant_part = Some(child.offset()),
            dw::DW_TAG_template_type_parameter => {
                let name = self.unit.name(child).unwrap_or_default();
                record.arguments.push((name, self.target(child)));
            }
            _ => {}
        });
        record.variants = variant_part.and_then(|at| self.variants(at));
        record
    }

    fn variants(&self, at: UnitOffset) -> Option<Variants> {
        let part = self.unit.unit.entry(at).ok()?;
        let chosen = part.attr_value(dw::DW_AT_discr);
        let chosen = chosen.and_then(|value| self.debug.follow(&self.unit, &value));
        let discriminant = chosen
            .and_then(|id| self.unit.unit.entry(UnitOffset(id.offset)).ok())
            .and_then(|entry| self.member(&entry));
        let mut offsets = Vec::new();
        children(&self.unit, at, |child| {
            if child.tag() == dw::DW_TAG_variant {
                offsets.push((child.offset(), discriminants(child)));
            }
        });
        let variant = |(at, values): (UnitOffset, _)| {
            let mut members = Vec::new();
            children(&self.unit, at, |child| {
                if child.tag() == dw::DW_TAG_member {
                    members.extend(self.member(child));
                }
            });
            Variant { values, members }
        };
        Some(Variants { discriminant, variants: offsets.into_iter().map(variant).collect() })
    }

    fn member(&self, entry: &Entry) -> Option<Member> {
        let static_member =
            entry.has_attr(dw::DW_AT_declaration) || entry.has_attr(dw::DW_AT_external);
        if static_member && entry.tag() == dw::DW_TAG_member {
            return None;
        }
        let bits = self.number(entry, dw::DW_AT_bit_size);
        let ty = self.target(entry);
        Some(Member {
            name: self.unit.name(entry),
            offset: self.member_offset(entry, bits, &ty)?,
            ty,
            bits,
            base: entry.tag() == dw::DW_TAG_inheritance,
            artificial: entry.has_attr(dw::DW_AT_artificial),
        })
    }

    fn member_offset(
        &self,
        entry: &Entry,
        bits: Option<u64>,
        ty: &TypeRef,
    ) -> Option<MemberOffset> {
        if let Some(offset) = self.number(entry, dw::DW_AT_data_bit_offset) {
            return Some(MemberOffset::Bits(offset));
        }
        let start = match entry.attr(dw::DW_AT_data_member_location) {
            None => 0,
            Some(value) => match value.udata_value() {
                Some(bytes) => bytes.checked_mul(8)?,
                None => match simple_offset(&value.value(), &self.unit) {
                    Some(bytes) => bytes.checked_mul(8)?,
                    None => {
                        let value = value.value();
                        let bound = Bound { value, unit: self.id, is_count: false };
                        return Some(MemberOffset::Computed(bound));
                    }
                },
            },
        };
        // Before DWARF 4, bit-fields were counted from the other end of their storage.
        let Some(from_end) = self.number(entry, dw::DW_AT_bit_offset) else {
            return Some(MemberOffset::Bits(start));
        };
        let storage = self.number(entry, dw::DW_AT_byte_size).or_else(|| match ty {
            TypeRef::Entry(of) => self.debug.size_of_entry(*of),
            _ => None,
        })?;
        let from_start = storage.checked_mul(8)?.checked_sub(from_end)?.checked_sub(bits?)?;
        Some(MemberOffset::Bits(start.checked_add(from_start)?))
    }

    /// The type that an entry of this unit has.
    fn target(&self, entry: &Entry) -> TypeRef {
        let value = entry.attr_value(dw::DW_AT_type);
        let target = value.and_then(|value| self.debug.follow(&self.unit, &value));
        target.map_or(TypeRef::Void, TypeRef::Entry)
    }

    fn number(&self, entry: &Entry, name: gimli::DwAt) -> Option<u64> {
        entry.attr(name)?.udata_value()
    }

    fn children(&self, each: impl FnMut(&Entry)) {
        children(&self.unit, self.entry.offset(), each);
    }
}

impl DebugInfo {
    /// The size of the type at `entry`, through aliases and arrays of fixed size.
    pub fn size_of_entry(&self, entry: EntryId) -> Option<u64> {
        self.size_within(&TypeRef::Entry(entry), 32)
    }

    fn size_within(&self, ty: &TypeRef, depth: usize) -> Option<u64> {
        let depth = depth.checked_sub(1)?;
        let entry = match ty {
            TypeRef::Entry(entry) => *entry,
            TypeRef::Void => return None,
            TypeRef::Integer { size, .. } | TypeRef::Float(size) => return Some(*size),
            TypeRef::Pointer(_) => return Some(8),
            TypeRef::Array(of, count) => return self.size_within(of, depth)?.checked_mul(*count),
        };
        let found = self.entry_type(entry);
        if let Some(size) = found.size {
            return Some(size);
        }
        match &found.shape {
            Shape::Alias { to, .. } => self.size_within(to, depth),
            Shape::Array { element, counts } => {
                let mut size = self.size_within(element, depth)?;
                for count in counts {
                    let Count::Fixed(count) = count else { return None };
                    size = size.checked_mul(*count)?;
                }
                Some(size)
            }
            // An enumeration without a size of its own has that of its numbers.
            _ => None,
        }
    }
}

/// A bound of an array, if it is a constant. In a form of one, two or four bytes it has no sign: the last element of
/// an array of 200 is the byte 0xc7. Eight bytes of ones are the upper bound of an array of no elements.
fn bound(value: Attribute) -> Option<i128> {
    match value {
        Attribute::Sdata(number) => Some(number.into()),
        Attribute::Data8(number) => Some(i128::from(number.cast_signed())),
        other => other.udata_value().map(i128::from),
    }
}

/// Calls `each` for the children of the entry at `at`.
pub(crate) fn children(unit: &LoadedUnit, at: UnitOffset, mut each: impl FnMut(&Entry)) {
    let Ok(mut cursor) = unit.unit.entries_at_offset(at) else { return };
    let Ok(Some(parent)) = cursor.next_dfs() else { return };
    if !parent.has_children() {
        return;
    }
    let Ok(Some(first)) = cursor.next_dfs() else { return };
    if first.depth() != 1 {
        return;
    }
    each(first);
    while let Ok(Some(child)) = cursor.next_sibling() {
        each(child);
    }
}

/// `DW_OP_plus_uconst N`, the only expression that compilers of old used for members.
fn simple_offset(value: &Attribute, unit: &LoadedUnit) -> Option<u64> {
    let mut operations = value.exprloc_value()?.operations(unit.unit.encoding());
    let first = operations.next().ok()??;
    match (first, operations.next().ok()?) {
        (gimli::Operation::PlusConstant { value }, None) => Some(value),
        _ => None,
    }
}

/// The discriminants of a variant.
fn discriminants(variant: &Entry) -> Vec<(u64, u64)> {
    if let Some(value) = variant.attr(dw::DW_AT_discr_value) {
        let number = value.udata_value().or_else(|| value.sdata_value().map(|n| n as u64));
        return number.map(|number| vec![(number, number)]).unwrap_or_default();
    }
    let Some(Attribute::Block(mut list)) = variant.attr_value(dw::DW_AT_discr_list) else {
        return Vec::new();
    };
    let mut values = Vec::new();
    use gimli::Reader as _;
    while let Ok(kind) = list.read_u8() {
        let Ok(from) = list.read_uleb128() else { break };
        let to = if kind == 0 { Ok(from) } else { list.read_uleb128() };
        let Ok(to) = to else { break };
        values.push((from, to));
    }
    values
}
