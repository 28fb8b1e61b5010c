//! Objects in memory that a system call is given, and where they are placed: each at the very end of a
//! slot, behind which nothing is mapped.

use syscalls::Peek;

/// Slots of the program that makes the calls.
const FIRST: u64 = 0x2000_0000;
const STRIDE: u64 = 0x1_0000;
const ROOM: u64 = 0x8000;

/// The slot for what the kernel writes: there is room.
pub const OUTPUT: u64 = FIRST + 15 * STRIDE;

/// The first address behind a slot.
fn end(slot: usize) -> u64 {
    FIRST + STRIDE * slot as u64 + ROOM
}

/// Bytes that a call is given a pointer to.
#[derive(Clone, Default, Debug)]
pub struct Object {
    bytes: Vec<u8>,
    /// Pointers inside: at this offset to that object.
    links: Vec<(usize, Object)>,
    /// Addresses must be multiples of this, so it is cut by as much.
    unit: u64,
    /// So many bytes must be there, as the kernel also writes.
    room: u64,
}

impl Object {
    /// These bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), links: Vec::new(), unit: 1, room: 0 }
    }

    /// A pointer to another object at this offset.
    pub fn link(mut self, offset: usize, to: Self) -> Self {
        self.links.push((offset, to));
        self
    }

    /// The same bytes, which must be aligned.
    pub fn aligned(mut self, unit: u64) -> Self {
        self.unit = unit;
        self
    }

    /// The same bytes, of which the kernel also writes: so many must be there.
    pub fn with_room(mut self, room: u64) -> Self {
        self.room = room;
        self
    }

    /// This object and those that it leads to, each before what it leads to.
    fn flatten(&self, all: &mut Vec<Placed>) -> usize {
        let own = all.len();
        let (unit, room) = (self.unit, self.room);
        all.push(Placed { bytes: self.bytes.clone(), links: Vec::new(), unit, room });
        for (offset, to) in &self.links {
            let at = to.flatten(all);
            all[own].links.push((*offset, at));
        }
        own
    }
}

/// An object in a slot of its own.
#[derive(Clone, Debug)]
struct Placed {
    bytes: Vec<u8>,
    links: Vec<(usize, usize)>,
    unit: u64,
    room: u64,
}

/// All objects of a call, and how many bytes of each are there.
#[derive(Clone, Debug)]
pub struct Memory {
    objects: Vec<Placed>,
    there: Vec<u64>,
}

impl Memory {
    /// The objects that arguments point to; also where each argument's is among them.
    pub fn new(objects: &[&Object]) -> (Self, Vec<usize>) {
        let mut all = Vec::new();
        let places = objects.iter().map(|object| object.flatten(&mut all)).collect();
        let there = all.iter().map(|object| object.bytes.len() as u64).collect();
        assert!(all.len() < 15, "one slot is for output");
        (Self { objects: all, there }, places)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Where an object begins.
    pub fn address(&self, object: usize) -> u64 {
        end(object) - self.there[object]
    }

    /// By how much an object may be shortened.
    pub fn unit(&self, object: usize) -> u64 {
        self.objects[object].unit
    }

    /// How many bytes of an object must be there for the kernel to write.
    pub fn room(&self, object: usize) -> u64 {
        self.objects[object].room
    }

    /// The same, but only so many bytes of an object are there.
    pub fn cut(&self, object: usize, bytes: u64) -> Self {
        let mut cut = self.clone();
        cut.there[object] = bytes;
        cut
    }

    /// The bytes that are there.
    pub fn contents(&self, object: usize) -> Vec<u8> {
        let placed = &self.objects[object];
        let mut bytes = placed.bytes.clone();
        for (offset, to) in &placed.links {
            bytes[*offset..offset + 8].copy_from_slice(&self.address(*to).to_le_bytes());
        }
        bytes.truncate(self.there[object] as usize);
        bytes
    }

    /// The object that an address lies in.
    pub fn find(&self, address: u64) -> Option<usize> {
        (0..self.len()).find(|object| (end(*object) - ROOM..=end(*object)).contains(&address))
    }
}

impl Peek for Memory {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        out.iter_mut().enumerate().all(|(index, byte)| {
            let address = address + index as u64;
            let Some(object) = self.find(address).filter(|object| address < end(*object)) else {
                return false;
            };
            // What lies before an object in its slot is zeros.
            let own = address.checked_sub(self.address(object));
            *byte = own.map_or(0, |at| self.contents(object)[at as usize]);
            true
        })
    }
}
