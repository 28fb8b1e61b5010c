//! The machine as rules see it at one detection point: lookups instead of a stored trace.

use super::Machine;
use crate::rules::model::{EventKind, Set};
use crate::rules::state::{Answer, BlockFacts, BlockId, Pointer, State, TraceEvent, Value, Visit};

/// The machine at a detection point.
pub struct View<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// Bytes of the access.
    pub width: u64,
    /// Family of the function that frees.
    pub releaser: base::allocator::Family,
    /// Whether the bytes of the access were written.
    pub written: bool,
    /// Blocks that some pointer of the program points into, where a rule asks for them.
    pub pointed: Option<&'a [(BlockId, u64)]>,
}

impl View<'_> {
    fn malloc_event(&self, id: BlockId) -> Option<TraceEvent> {
        let block = self.machine.blocks.get(id)?;
        let heap = block.facts.region == crate::rules::model::REGION_HEAP;
        let size = Value::Number(i128::from(block.facts.size));
        heap.then(|| TraceEvent { time: block.facts.time, arguments: vec![size, Value::Block(id)] })
    }

    fn free_event(&self, id: BlockId) -> Option<TraceEvent> {
        let release = self.machine.blocks.get(id)?.release?;
        let arguments = vec![Value::Pointer(release.how.pointer), Value::Block(id)];
        Some(TraceEvent { time: release.time, arguments })
    }

    fn descriptor_events(&self, kind: EventKind, key: Option<&Value>) -> Vec<TraceEvent> {
        let Some(Value::Number(number)) = key else { return Vec::new() };
        let history = self.machine.descriptors.get(*number as i64);
        let time = if kind == EventKind::Open { history.opened } else { history.closed };
        let event = |time| TraceEvent { time, arguments: vec![Value::Number(*number)] };
        time.map(event).into_iter().collect()
    }

    fn block_events(&self, kind: EventKind, key: Option<&Value>) -> Vec<TraceEvent> {
        let event = |id| match kind {
            EventKind::Malloc => self.malloc_event(id),
            _ => self.free_event(id),
        };
        if let Some(Value::Block(id)) = key {
            return event(*id).into_iter().collect();
        }
        let all = (1..=self.machine.blocks.count() as u32).map(BlockId);
        let mut events: Vec<_> = all.filter_map(event).collect();
        events.sort_by_key(|event| event.time);
        events
    }

    /// That the bytes at a pointer were written is all that is kept of writes.
    fn write_events(&self, key: Option<&Value>) -> Vec<TraceEvent> {
        let Some(Value::Pointer(pointer)) = key else { return Vec::new() };
        let arguments =
            vec![Value::Pointer(*pointer), Value::Number(0), Value::Origin("not kept".to_owned())];
        let event = TraceEvent { time: 0, arguments };
        if self.written { vec![event] } else { Vec::new() }
    }

    fn call_events(&self, kind: EventKind, key: Option<&Value>) -> Vec<TraceEvent> {
        let Some(Value::Function(name)) = key else { return Vec::new() };
        let found = self.machine.history.get(&(kind, name.clone()));
        found.map(|events| events.iter().cloned().collect()).unwrap_or_default()
    }
}

impl State for View<'_> {
    fn facts(&self, block: BlockId) -> Option<BlockFacts> {
        self.machine.blocks.get(block).map(|block| block.facts)
    }

    fn contents(&self, address: u64, size: u64) -> Answer<i128> {
        self.machine.contents.number(address, size).map_or(Answer::NotKnown, Answer::Is)
    }

    fn width(&self) -> u64 {
        self.width
    }

    fn releaser(&self) -> base::allocator::Family {
        self.releaser
    }

    fn each(&self, set: Set, key: Option<&Value>, visit: &mut dyn FnMut(Value) -> Visit) {
        let blocks = &self.machine.blocks;
        let all: Box<dyn Iterator<Item = Value>> = match set {
            Set::Heap => Box::new(blocks.live().map(Value::Block)),
            Set::Freed => Box::new(blocks.freed().map(Value::Block)),
            Set::Descriptors => {
                let open = self.machine.descriptors.open_ones();
                Box::new(open.map(|number| Value::Number(i128::from(number))))
            }
            Set::Pointers => {
                let all = self.pointed.unwrap_or_default();
                let wanted = match key {
                    Some(Value::Block(id)) => {
                        let start = all.partition_point(|(block, _)| block < id);
                        let end = all.partition_point(|(block, _)| block <= id);
                        &all[start..end]
                    }
                    _ => all,
                };
                let pointer = |&(block, address): &(BlockId, u64)| {
                    Value::Pointer(Pointer { address, block: Some(block) })
                };
                Box::new(wanted.iter().map(pointer))
            }
        };
        for value in all {
            if visit(value) == Visit::Enough {
                return;
            }
        }
    }

    fn events(
        &self,
        kind: EventKind,
        key: Option<&Value>,
        newest_first: bool,
        visit: &mut dyn FnMut(&TraceEvent) -> Visit,
    ) {
        let mut events = match kind {
            EventKind::Malloc | EventKind::Free => self.block_events(kind, key),
            EventKind::Write => self.write_events(key),
            EventKind::Call | EventKind::Return => self.call_events(kind, key),
            EventKind::Open | EventKind::Close => self.descriptor_events(kind, key),
        };
        if newest_first {
            events.reverse();
        }
        for event in &events {
            if visit(event) == Visit::Enough {
                return;
            }
        }
    }
}
