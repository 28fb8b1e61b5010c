//! Into values: members, elements, what a pointer points to, and numbers.

use crate::location::number;
use crate::scene::Scene;
use crate::types::{Count, Member, MemberOffset, Record, Shape, Type, TypeRef, Variant};
use crate::value::{Held, Home, Lost, Piece, Value};
use base::Address;

/// Pointers that a member access goes through by itself.
const MOST_POINTERS: usize = 8;
/// Bases and anonymous members are searched no deeper.
const DEEPEST_RECORD: usize = 32;

/// A number read from a value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scalar {
    /// A whole number.
    Integer(i128),
    /// A floating-point number.
    Float(f64),
}

impl Scene<'_> {
    /// The member called `name`, of the record itself, of its bases and anonymous members, or of
    /// the variant that is there; through pointers. `Ok(None)` if there is none of that name.
    pub fn member(&self, value: &Value, name: &str) -> Result<Option<Value>, Lost> {
        let record = self.through_pointers(value)?;
        self.member_within(&record, name, DEEPEST_RECORD)
    }

    fn member_within(
        &self,
        value: &Value,
        name: &str,
        depth: usize,
    ) -> Result<Option<Value>, Lost> {
        let Some(depth) = depth.checked_sub(1) else { return Ok(None) };
        let (value, found) = self.plain(value);
        let Shape::Record(record) = &found.shape else { return Ok(None) };
        let named = |member: &&Member| {
            let own = member.name.as_deref();
            // The fields of a Rust tuple are `0`, `1` …, written `__0` in debug information.
            own == Some(name) || own.and_then(|own| own.strip_prefix("__")) == Some(name)
        };
        let variant = self.active_variant(&value, record)?;
        let members = || record.members.iter().chain(variant.iter().flat_map(|v| &v.members));
        if let Some(member) = members().find(named) {
            return self.member_value(&value, member).map(Some);
        }
        for member in members().filter(|member| member.base || member.name.is_none()) {
            let inner = self.member_value(&value, member)?;
            if let Some(found) = self.member_within(&inner, name, depth)? {
                return Ok(Some(found));
            }
        }
        // `Some.0` and plain `0` both reach into the variant that is there.
        for member in variant.iter().flat_map(|variant| &variant.members) {
            let inner = self.member_value(&value, member)?;
            if let Some(found) = self.member_within(&inner, name, depth)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// A member of a record.
    pub fn member_value(&self, record: &Value, member: &Member) -> Result<Value, Lost> {
        let module = record.module;
        let held = match &member.offset {
            MemberOffset::Bits(offset) => {
                let bits = member.bits.or_else(|| self.size_of(module, &member.ty)?.checked_mul(8));
                match (bits, &record.held) {
                    (Some(bits), held) => held.part(*offset, bits),
                    // A flexible array at the end has no size but a place.
                    (None, Held::Memory(address)) => {
                        Held::Memory(address.offset((offset / 8) as i64))
                    }
                    (None, held) => held.part(*offset, 0),
                }
            }
            MemberOffset::Computed(bound) => {
                let address = record.held.address().ok_or(Lost::OptimisedOut)?;
                Held::Memory(self.computed_offset(module, bound, address)?)
            }
        };
        Ok(Value { module, ty: member.ty.clone(), held })
    }

    /// The variant of a Rust enum that is there.
    pub fn active_variant<'r>(
        &self,
        value: &Value,
        record: &'r Record,
    ) -> Result<Option<&'r Variant>, Lost> {
        let Some(variants) = &record.variants else { return Ok(None) };
        let Some(discriminant) = &variants.discriminant else {
            return Ok(variants.variants.first());
        };
        let held = self.member_value(value, discriminant)?;
        let bytes = self.bytes(&held)?;
        let mask = if bytes.len() >= 8 { u64::MAX } else { (1u64 << (bytes.len() * 8)) - 1 };
        let actual = number(&bytes);
        let chosen = variants.variants.iter().find(|variant| {
            let within = |(from, to): &(u64, u64)| (from & mask..=to & mask).contains(&actual);
            variant.values.iter().any(within)
        });
        Ok(chosen.or_else(|| variants.variants.iter().find(|variant| variant.values.is_empty())))
    }

    /// What a pointer or reference leads to.
    pub fn dereference(&self, value: &Value) -> Result<Option<Value>, Lost> {
        let (value, found) = self.plain(value);
        let to = match &found.shape {
            Shape::Pointer { to } | Shape::Reference { to } => to,
            Shape::Array { .. } => return self.element(&value, 0),
            _ => return Ok(None),
        };
        if let Held::Pieces(pieces) = &value.held
            && let [Piece { home: Home::ImplicitPointer { entry, offset, frame }, .. }] =
                &pieces[..]
        {
            let object = self.locate(value.module, *entry, *frame);
            let from = u64::try_from(*offset).unwrap_or(0).saturating_mul(8);
            let bits = self.size_of(value.module, to).unwrap_or(0).saturating_mul(8);
            let held = object.held.part(from, bits);
            return Ok(Some(Value { module: value.module, ty: to.clone(), held }));
        }
        let held = match self.bytes(&value) {
            Ok(bytes) => Held::Memory(Address(number(&bytes))),
            // What is behind a lost pointer is lost too, but its type is known.
            Err(why) => {
                let bits = self.size_of(value.module, to).unwrap_or(0).saturating_mul(8);
                Held::lost(bits, why)
            }
        };
        Ok(Some(Value { module: value.module, ty: to.clone(), held }))
    }

    /// An element of an array, of what a pointer points to, or of a collection.
    pub fn element(&self, value: &Value, index: i128) -> Result<Option<Value>, Lost> {
        let (value, found) = self.plain(value);
        let module = value.module;
        let (element, start) = match &found.shape {
            Shape::Array { element, counts } => {
                (rest_of_array(element, counts.get(1..).unwrap_or_default()), None)
            }
            Shape::Pointer { to } => {
                let Some(first) = self.dereference(&value)? else { return Ok(None) };
                (to.clone(), Some(first.held))
            }
            Shape::Reference { .. } => {
                let Some(to) = self.dereference(&value)? else { return Ok(None) };
                return self.element(&to, index);
            }
            Shape::Record(_) => match self.sequence(&value) {
                Some(sequence) => {
                    return Ok(Some(self.sequence_element(&sequence, index)));
                }
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let size = i128::from(self.size_of(module, &element).unwrap_or(1));
        let held = match start.unwrap_or(value.held) {
            Held::Memory(address) => {
                Held::Memory(Address((i128::from(address.0) + index * size) as u64))
            }
            pieces => {
                let bits = u64::try_from(index * size).unwrap_or(u64::MAX).saturating_mul(8);
                pieces.part(bits, (size as u64).saturating_mul(8))
            }
        };
        Ok(Some(Value { module, ty: element, held }))
    }

    /// The number that a scalar is; an array is its address, as in C. `Ok(None)` for records.
    pub fn scalar(&self, value: &Value) -> Result<Option<Scalar>, Lost> {
        let (value, found) = self.plain(value);
        let integer = |signed| {
            let bits = self.bits(&value)?;
            let bytes = self.bytes(&value)?;
            Ok(Some(Scalar::Integer(extend(&bytes, bits, signed))))
        };
        match &found.shape {
            Shape::Integer { signed }
            | Shape::Character { signed }
            | Shape::Enumeration { signed, .. } => integer(*signed),
            Shape::Boolean | Shape::Pointer { .. } => integer(false),
            Shape::Float => Ok(float(&self.bytes(&value)?).map(Scalar::Float)),
            Shape::Reference { .. } => match self.dereference(&value)? {
                Some(to) => self.scalar(&to),
                None => Ok(None),
            },
            Shape::Array { .. } | Shape::Function { .. } => {
                Ok(value.held.address().map(|address| Scalar::Integer(address.0.into())))
            }
            _ => Ok(None),
        }
    }

    /// How many bits a value has.
    fn bits(&self, value: &Value) -> Result<u64, Lost> {
        match &value.held {
            Held::Pieces(pieces) => Ok(pieces.iter().map(|piece| piece.bits).sum()),
            Held::Memory(_) => {
                let size = self.size_of(value.module, &value.ty);
                let size = size.ok_or_else(|| Lost::Broken("a type without a size".into()))?;
                Ok(size.saturating_mul(8))
            }
        }
    }

    /// The value with aliases stripped from its type, and that type.
    pub(crate) fn plain(&self, value: &Value) -> (Value, std::sync::Arc<Type>) {
        let (module, ty, found) = self.stripped(value.module, &value.ty);
        (Value { module, ty, held: value.held.clone() }, found)
    }

    /// Follows pointers and references until something else comes.
    pub(crate) fn through_pointers(&self, value: &Value) -> Result<Value, Lost> {
        let mut value = value.clone();
        for _ in 0..MOST_POINTERS {
            let (plain, found) = self.plain(&value);
            if !matches!(found.shape, Shape::Pointer { .. } | Shape::Reference { .. }) {
                return Ok(value);
            }
            match self.dereference(&plain)? {
                Some(next) => value = next,
                None => return Ok(value),
            }
        }
        Ok(value)
    }
}

/// The type of an element of an array with further dimensions.
fn rest_of_array(element: &TypeRef, rest: &[Count]) -> TypeRef {
    rest.iter().rev().fold(element.clone(), |inner, count| match count {
        Count::Fixed(count) => inner.array(*count),
        _ => inner.array(0),
    })
}

/// The lowest `bits` bits as a number.
pub(crate) fn extend(bytes: &[u8], bits: u64, signed: bool) -> i128 {
    let mut wide = [0; 16];
    let count = bytes.len().min(16);
    wide[..count].copy_from_slice(&bytes[..count]);
    let bits = u32::try_from(bits.clamp(1, 128)).unwrap_or(128);
    let shift = 128 - bits;
    let raw = u128::from_le_bytes(wide) << shift;
    // A number of 128 bits without a sign that does not fit is shown with one: nothing else can.
    if signed { (raw as i128) >> shift } else { (raw >> shift) as i128 }
}

/// A floating-point number of 4, 8, or (x87) 10 to 16 bytes.
pub(crate) fn float(bytes: &[u8]) -> Option<f64> {
    match bytes.len() {
        4 => Some(f32::from_le_bytes(bytes.try_into().ok()?).into()),
        8 => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
        10..=16 => {
            let mantissa = number(&bytes[..8]) as f64;
            let top = u16::from_le_bytes(bytes[8..10].try_into().ok()?);
            let exponent = i32::from(top & 0x7fff) - 16383 - 63;
            let size = mantissa * 2f64.powi(exponent);
            Some(if top & 0x8000 != 0 { -size } else { size })
        }
        _ => None,
    }
}
