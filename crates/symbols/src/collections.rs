//! Strings, vectors and slices of Rust and C++, whose records say little to a reader: where the
//! elements are and how many.

use crate::location::number;
use crate::scene::Scene;
use crate::types::{Shape, TypeRef};
use crate::value::{Held, Value};
use base::Address;

/// Elements in a row.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// The module that the element type is from.
    pub module: usize,
    /// What the elements are.
    pub element: TypeRef,
    /// Where the first one is.
    pub start: Address,
    /// How many there are.
    pub count: u64,
    /// Whether they are the bytes of a text.
    pub text: bool,
}

impl Scene<'_> {
    /// The elements of a Rust slice, `str`, `String`, `Vec` or boxed slice, or of a C++
    /// `std::string` or `std::vector`; `None` for anything else.
    #[must_use]
    pub fn sequence(&self, value: &Value) -> Option<Sequence> {
        let (value, found) = self.plain(value);
        let Shape::Record(record) = &found.shape else { return None };
        let name = found.name.as_deref()?;
        if found.rust {
            return self.rust_sequence(&value, name, &record.arguments);
        }
        if name.starts_with("basic_string<") {
            let start = self.member(&self.member(&value, "_M_dataplus").ok()??, "_M_p").ok()??;
            let count = self.number_at(&value, &["_M_string_length"])?;
            return self.pointed(&start, count, true);
        }
        if name.starts_with("vector<") {
            let data = self.member(&value, "_M_impl").ok()??;
            let start = self.member(&data, "_M_start").ok()??;
            let end = self.number_at(&data, &["_M_finish"])?;
            let first = number(&self.bytes(&start).ok()?);
            let mut sequence = self.pointed(&start, 0, false)?;
            let size = self.size_of(sequence.module, &sequence.element).filter(|size| *size > 0)?;
            sequence.count = end.checked_sub(first)? / size;
            return Some(sequence);
        }
        None
    }

    fn rust_sequence(
        &self,
        value: &Value,
        name: &str,
        arguments: &[(String, TypeRef)],
    ) -> Option<Sequence> {
        let text = matches!(name, "&str" | "&mut str" | "alloc::boxed::Box<str>" | "String");
        if let Ok(Some(start)) = self.member(value, "data_ptr") {
            let count = self.number_at(value, &["length"])?;
            return self.pointed(&start, count, name.ends_with("str") || name.contains("Box<str"));
        }
        if name == "String" {
            let bytes = self.member(value, "vec").ok()??;
            return Some(Sequence { text, ..self.sequence(&bytes)? });
        }
        if !name.starts_with("Vec<") {
            return None;
        }
        let (_, element) = arguments.iter().find(|(name, _)| name == "T")?;
        let count = self.number_at(value, &["len"])?;
        // The pointer is buried under wrappers that change between versions of the library.
        let buffer = self.member(value, "buf").ok()??;
        let start = self.first_pointer(&buffer, 8)?;
        Some(Sequence { module: value.module, element: element.clone(), start, count, text })
    }

    /// The first pointer inside nested records.
    fn first_pointer(&self, value: &Value, depth: usize) -> Option<Address> {
        let depth = depth.checked_sub(1)?;
        let (value, found) = self.plain(value);
        match &found.shape {
            Shape::Pointer { .. } => Some(Address(number(&self.bytes(&value).ok()?))),
            Shape::Record(record) => record.members.iter().find_map(|member| {
                self.first_pointer(&self.member_value(&value, member).ok()?, depth)
            }),
            _ => None,
        }
    }

    fn number_at(&self, value: &Value, path: &[&str]) -> Option<u64> {
        let mut at = value.clone();
        for name in path {
            at = self.member(&at, name).ok()??;
        }
        Some(number(&self.bytes(&at).ok()?))
    }

    fn pointed(&self, pointer: &Value, count: u64, text: bool) -> Option<Sequence> {
        let (pointer, found) = self.plain(pointer);
        let Shape::Pointer { to } = &found.shape else { return None };
        let start = Address(number(&self.bytes(&pointer).ok()?));
        Some(Sequence { module: pointer.module, element: to.clone(), start, count, text })
    }

    /// An element of a sequence.
    #[must_use]
    pub fn sequence_element(&self, sequence: &Sequence, index: i128) -> Value {
        let size = i128::from(self.size_of(sequence.module, &sequence.element).unwrap_or(1));
        let address = Address((i128::from(sequence.start.0) + index * size) as u64);
        Value { module: sequence.module, ty: sequence.element.clone(), held: Held::Memory(address) }
    }
}
