//! A moment of one thread: the program, its memory and the stack of active calls. Everything
//! that asks for values starts here.

use crate::program::Program;
use crate::registers::Memory;
use crate::types::{Count, Shape, Type, TypeRef};
use crate::unwind::{Frame, Stack};
use crate::value::{Held, Home, Lost, Value, copy_bits};
use base::Address;
use std::sync::Arc;

/// Aliases followed before they are taken for a loop.
const LONGEST_ALIAS: usize = 32;
/// The most bytes read for one scalar; broken types claim more.
const LARGEST_SCALAR: u64 = 1 << 20;

/// A moment of one thread.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its memory at that moment.
    pub memory: &'a dyn Memory,
    /// The thread's active calls; may have no frames if only static data is of interest.
    pub stack: &'a Stack,
    /// The thread pointer (`fs_base`), needed for thread-local variables only.
    pub thread_pointer: Option<Address>,
}

/// One of the active calls: a frame, and within it one of the calls inlined there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Level {
    /// The frame, 0 the innermost.
    pub frame: usize,
    /// How many inlined calls further out than the innermost one of the frame.
    pub inlined: usize,
}

impl<'a> Scene<'a> {
    pub(crate) fn frame(&self, index: usize) -> Option<&'a Frame> {
        self.stack.frames.get(index)
    }

    /// One level of a type.
    #[must_use]
    pub fn type_of(&self, module: usize, ty: &TypeRef) -> Arc<Type> {
        let made = |size, shape| Arc::new(Type { name: None, size, shape, rust: false });
        match ty {
            TypeRef::Entry(entry) => match self.debug(module) {
                Some(debug) => debug.entry_type(*entry),
                None => made(None, Shape::Unknown),
            },
            TypeRef::Void => made(None, Shape::Void),
            TypeRef::Integer { size, signed } => {
                made(Some(*size), Shape::Integer { signed: *signed })
            }
            TypeRef::Float(size) => made(Some(*size), Shape::Float),
            TypeRef::Pointer(to) => made(Some(8), Shape::Pointer { to: (**to).clone() }),
            TypeRef::Array(element, count) => {
                let size = self.size_of(module, element).and_then(|size| size.checked_mul(*count));
                let counts = vec![Count::Fixed(*count)];
                made(size, Shape::Array { element: (**element).clone(), counts })
            }
        }
    }

    /// A type without its aliases and qualifiers, and completed: a record that is only declared
    /// in one place is looked up where it is defined.
    #[must_use]
    pub fn stripped(&self, module: usize, ty: &TypeRef) -> (usize, TypeRef, Arc<Type>) {
        let (mut module, mut ty) = (module, ty.clone());
        for _ in 0..LONGEST_ALIAS {
            let found = self.type_of(module, &ty);
            match &found.shape {
                Shape::Alias { to, .. } => ty = to.clone(),
                Shape::Record(record) if record.declaration => {
                    let name = found.name.as_deref();
                    match name.and_then(|name| self.definition(module, name)) {
                        Some((elsewhere, definition)) => (module, ty) = (elsewhere, definition),
                        None => return (module, ty, found),
                    }
                }
                _ => return (module, ty, found),
            }
        }
        (module, ty, self.type_of(module, &TypeRef::Void))
    }

    /// The size of a type in bytes.
    #[must_use]
    pub fn size_of(&self, module: usize, ty: &TypeRef) -> Option<u64> {
        let sized = match ty {
            TypeRef::Entry(entry) => self.debug(module)?.size_of_entry(*entry),
            TypeRef::Array(of, count) => self.size_of(module, of)?.checked_mul(*count),
            _ => self.type_of(module, ty).size,
        };
        sized.or_else(|| {
            let (elsewhere, complete, found) = self.stripped(module, ty);
            match (&found.shape, &complete) {
                (Shape::Record(record), TypeRef::Entry(entry)) if !record.declaration => {
                    self.debug(elsewhere)?.size_of_entry(*entry)
                }
                _ => None,
            }
        })
    }

    /// The bits of a value, as bytes with the lowest bits first.
    pub fn bytes(&self, value: &Value) -> Result<Vec<u8>, Lost> {
        let size = match &value.held {
            Held::Pieces(pieces) => {
                pieces.iter().fold(0u64, |sum, piece| sum.saturating_add(piece.bits)).div_ceil(8)
            }
            Held::Memory(_) => self
                .size_of(value.module, &value.ty)
                .ok_or_else(|| Lost::Broken("the size of the type is not known".into()))?,
        };
        if size > LARGEST_SCALAR {
            return Err(Lost::Broken(format!("a value of {size} bytes")));
        }
        self.read(&value.held, size)
    }

    /// So many bytes of what is held.
    pub(crate) fn read(&self, held: &Held, size: u64) -> Result<Vec<u8>, Lost> {
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        let pieces = match held {
            Held::Memory(address) => {
                let read = self.memory.read(*address, &mut bytes);
                return if read { Ok(bytes) } else { Err(Lost::Unreadable(*address)) };
            }
            Held::Pieces(pieces) => pieces,
        };
        let mut at = 0;
        for piece in pieces {
            // In memory this leaves less than a byte to skip, whatever the file claims.
            let piece = piece.part(0, piece.bits);
            let needed = piece.skip.saturating_add(piece.bits);
            let source = self.home_bytes(&piece.home, needed)?;
            copy_bits(&source, piece.skip, &mut bytes, at, piece.bits);
            at += piece.bits;
        }
        Ok(bytes)
    }

    fn home_bytes(&self, home: &Home, bits: u64) -> Result<Vec<u8>, Lost> {
        let size = usize::try_from(bits.div_ceil(8)).unwrap_or(0);
        match home {
            Home::Memory(address) => {
                let mut bytes = vec![0; size];
                let read = self.memory.read(*address, &mut bytes);
                if read { Ok(bytes) } else { Err(Lost::Unreadable(*address)) }
            }
            Home::Register { register, frame } => {
                let frame = self.frame(*frame).ok_or(Lost::NoFrame)?;
                frame.registers.bytes(*register).ok_or(Lost::Overwritten(*register))
            }
            Home::Constant(bytes) => Ok(bytes.to_vec()),
            Home::ImplicitPointer { .. } => Err(Lost::OptimisedOut),
            Home::Lost(why) => Err(why.clone()),
        }
    }

    /// The definition of the record called `name`, in this module or another.
    fn definition(&self, module: usize, name: &str) -> Option<(usize, TypeRef)> {
        let others = (0..self.program.modules().len()).filter(|other| *other != module);
        std::iter::once(module).chain(others).find_map(|module| {
            let debug = self.debug(module)?;
            let defined = debug.names().types_named(name).find(|entry| {
                let found = debug.entry_type(*entry);
                matches!(&found.shape, Shape::Record(record) if !record.declaration)
            })?;
            Some((module, TypeRef::Entry(defined)))
        })
    }

    pub(crate) fn debug(&self, module: usize) -> Option<&'a crate::debug_info::DebugInfo> {
        self.program.modules().get(module)?.module()?.debug()
    }
}
