//! Records that list several things, or hold as much as their heads say: each with its writer and its
//! reader.

use super::{Cursor, FIELD, Kind};
use crate::shape::Shape;

/// Bytes of kind and length.
const HEAD: usize = 8;

/// A record that is being written, whose length comes last.
struct Growing(Vec<u8>);

impl Growing {
    fn new(kind: Kind) -> Self {
        Self([kind.bytes(), [0; 4]].concat())
    }

    fn finish(mut self) -> Vec<u8> {
        let length = (self.0.len() - HEAD) as u32;
        self.0[4..HEAD].copy_from_slice(&length.to_le_bytes());
        self.0
    }
}

/// The bytes of a list, behind its kind.
fn listed<'bytes>(cursor: &mut Cursor<'bytes>) -> Option<Cursor<'bytes>> {
    let length = cursor.u32()? as usize;
    Some(Cursor::new(cursor.take(length)?))
}

/// A superblock has been translated.
#[must_use]
pub fn define(shape: &Shape) -> Vec<u8> {
    let mut out = Growing::new(Kind::Define);
    shape.write(&mut out.0);
    out.finish()
}

/// Reads what [`define`] has written, behind its kind.
pub fn read_shape(cursor: &mut Cursor<'_>) -> Option<Shape> {
    Shape::read(&mut listed(cursor)?)
}

/// A superblock was left in the middle: the number of its first exit, how many of its instructions have
/// executed, the bytes of the fields that it has stored, and further fields.
#[must_use]
pub fn partial(first_exit: u32, executed: u16, stored: &[u8], added: &[u64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(12 + stored.len() + added.len() * FIELD);
    out.extend(Kind::Partial.bytes());
    out.extend(first_exit.to_le_bytes());
    out.extend(u32::from(executed).to_le_bytes());
    out.extend_from_slice(stored);
    added.iter().for_each(|field| out.extend(&field.to_le_bytes()[..FIELD]));
    out
}

/// Reads what [`partial`] has written, behind its kind and up to its fields: the number of the first exit,
/// and how many instructions have executed.
pub fn read_partial(cursor: &mut Cursor<'_>) -> Option<(u32, u16)> {
    Some((cursor.u32()?, u16::try_from(cursor.u32()?).ok()?))
}

/// An access that only the engine could work out: whether it writes, address, bytes.
pub type ExplicitAccess = (bool, u64, u32);

/// Accesses of the next instruction.
#[must_use]
pub fn accesses(list: &[ExplicitAccess]) -> Vec<u8> {
    let mut out = Growing::new(Kind::Access);
    for (write, address, size) in list {
        out.0.push(u8::from(*write));
        out.0.extend(address.to_le_bytes());
        out.0.extend(size.to_le_bytes());
    }
    out.finish()
}

/// Reads what [`accesses`] has written, behind its kind, into a list that is empty before.
pub fn read_accesses(mut list: Cursor<'_>, out: &mut Vec<ExplicitAccess>) -> Option<()> {
    out.clear();
    while !list.is_empty() {
        out.push((list.u8()? & 1 != 0, list.u64()?, list.u32()?));
    }
    Some(())
}

/// The bytes that [`read_accesses`] is given.
pub fn access_list<'bytes>(cursor: &mut Cursor<'bytes>) -> Option<Cursor<'bytes>> {
    listed(cursor)
}

/// The registers of a probed place, by rising number.
#[must_use]
pub fn probe(pc: u64, registers: u32, values: &[u64]) -> Vec<u8> {
    let mut out = Kind::Probe.bytes().to_vec();
    out.extend(pc.to_le_bytes());
    out.extend(registers.to_le_bytes());
    out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    out
}

/// Reads what [`probe`] has written, behind its kind: the place, which registers, and the bytes of their
/// values.
pub fn read_probe<'bytes>(cursor: &mut Cursor<'bytes>) -> Option<(u64, u32, &'bytes [u8])> {
    let (pc, registers) = (cursor.u64()?, cursor.u32()?);
    Some((pc, registers, cursor.take(registers.count_ones() as usize * 8)?))
}

/// Memory that the kernel read or wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer<'bytes> {
    /// Where.
    pub address: u64,
    /// Bytes.
    pub length: u64,
    /// Whether it wrote.
    pub write: bool,
    /// What was there, where the plan asks for it: before the call or after it. As many as `length` says.
    pub bytes: Option<&'bytes [u8]>,
    /// The first address of it that cannot be accessed. Such a buffer is what a call was given; what the kernel did
    /// with it is told besides.
    pub absent: Option<u64>,
}

/// Writes the buffers of a system call.
pub struct BufferList(Growing);

impl Default for BufferList {
    fn default() -> Self {
        Self(Growing::new(Kind::Buffers))
    }
}

impl BufferList {
    /// Adds one.
    pub fn add(&mut self, buffer: &Buffer<'_>) {
        let Buffer { address, length, write, bytes, absent } = *buffer;
        let out = &mut self.0.0;
        out.push(
            u8::from(write) | u8::from(bytes.is_some()) << 1 | u8::from(absent.is_some()) << 2,
        );
        out.extend(address.to_le_bytes());
        out.extend(length.to_le_bytes());
        out.extend(bytes.unwrap_or_default());
        out.extend(absent.into_iter().flat_map(u64::to_le_bytes));
    }

    /// Bytes so far.
    #[must_use]
    pub fn length(&self) -> usize {
        self.0.0.len() - HEAD
    }

    /// The record.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.0.finish()
    }
}

/// The buffers of a system call.
#[derive(Clone, Copy)]
pub struct Buffers<'bytes>(Cursor<'bytes>);

impl<'bytes> Buffers<'bytes> {
    /// Reads what [`BufferList`] has written, behind its kind.
    pub fn read(cursor: &mut Cursor<'bytes>) -> Option<Self> {
        listed(cursor).map(Self)
    }
}

impl<'bytes> Iterator for Buffers<'bytes> {
    type Item = Option<Buffer<'bytes>>;

    /// The next buffer; an inner `None`, once, if the record is broken.
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let buffer = self.read_one();
        if buffer.is_none() {
            self.0 = Cursor::new(&[]);
        }
        Some(buffer)
    }
}

impl<'bytes> Buffers<'bytes> {
    fn read_one(&mut self) -> Option<Buffer<'bytes>> {
        let (flags, address, length) = (self.0.u8()?, self.0.u64()?, self.0.u64()?);
        let bytes =
            if flags & 2 == 0 { None } else { Some(self.0.take(usize::try_from(length).ok()?)?) };
        let absent = if flags & 4 == 0 { None } else { Some(self.0.u64()?) };
        Some(Buffer { address, length, write: flags & 1 != 0, bytes, absent })
    }
}
