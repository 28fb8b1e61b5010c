//! What the kernel reads and writes in system calls, judged as accesses of whoever makes them.

use super::*;

/// Memory that the kernel touched in a call: address and bytes.
#[derive(Clone, Debug, Default)]
pub struct Buffers {
    /// Texts and buffers that it read.
    pub read: Vec<(u64, u64)>,
    /// What it wrote.
    pub written: Vec<(u64, u64)>,
    /// What it was given though it is not there, as a whole or in part.
    pub absent: Vec<Absent>,
}

/// Memory that a system call was given and that cannot be accessed.
#[derive(Clone, Copy, Debug)]
pub struct Absent {
    /// Where it begins, with what can be.
    pub address: u64,
    /// Bytes.
    pub length: u64,
    /// The first that cannot be accessed.
    pub from: u64,
    /// Whether it is there to be written to.
    pub write: bool,
}

impl Buffers {
    /// Nothing was touched.
    pub fn clear(&mut self) {
        self.read.clear();
        self.written.clear();
        self.absent.clear();
    }
}

impl Detector {
    /// A system call has returned.
    pub fn system_call(
        &mut self,
        number: u64,
        arguments: [u64; 6],
        answer: i64,
        buffers: &Buffers,
    ) {
        let pc = self.machine.running().calls.innermost().unwrap_or_default();
        if !self.machine.is_inside() {
            self.kernel_touched(pc, (number, &arguments, answer), buffers);
            for absent in &buffers.absent {
                self.given_absent(pc, (number, &arguments, answer), *absent);
            }
        }
        if self.machine.watches_writes {
            for &(address, length) in &buffers.read {
                let length = self.within_block(address, length);
                if let Some(at) = self.machine.unwritten.first(address, length) {
                    let here = Origin { pc, address: at, size: 1 };
                    self.unwritten_use(pc, self.machine.unwritten.origin(here));
                    self.machine.unwritten.remove(address, length);
                }
            }
        }
        if self.machine.needs.descriptors {
            self.descriptor(pc, number, &arguments, answer);
        }
        self.machine.system_call(number, &arguments, answer);
    }

    /// How much of a range is in the block that it begins in. What leaves a block is reported as that; what others
    /// have left behind it would only be a second finding about the same mistake.
    fn within_block(&self, address: u64, length: u64) -> u64 {
        let blocks = &self.machine.blocks;
        let block = blocks.containing(address).and_then(|id| blocks.get(id));
        block.map_or(length, |block| length.min(block.end() - address))
    }

    /// Bounds of what the kernel was given, and whether it was freed.
    fn kernel_touched(
        &mut self,
        pc: u64,
        (number, arguments, answer): (u64, &[u64; 6], i64),
        buffers: &Buffers,
    ) {
        let Some(call) = syscalls::get(number) else { return };
        let reads = buffers.read.iter().map(|range| (*range, false));
        let mut all: Vec<((u64, u64), bool)> = reads.collect();
        // Of a call that failed the table says at most what it may have written.
        if answer >= 0 {
            all.extend(buffers.written.iter().map(|range| (*range, true)));
            for room in syscalls::rooms(number, *arguments) {
                all.retain(|((address, _), write)| !(*write && *address == room.address));
                all.push(((room.address, room.length), true));
            }
        }
        for ((address, length), write) in all.into_iter().filter(|((_, length), _)| *length > 0) {
            let name = format!("the system call {}", call.name);
            let given = &arguments[..call.arguments.len().min(arguments.len())];
            let (mut pointer, chain) = self.machine.kernel_pointer(given, address);
            if pointer.block.is_none() {
                // Where a structure leads to, only the address tells.
                pointer.block = self.machine.blocks.containing(address);
            }
            self.judge(pointer, chain, Judged { pc, name, address, length, write });
        }
    }

    /// A call was given memory that cannot be accessed. What lies wholly where nothing ever was is no mistake: that is
    /// how programs find out whether memory is there.
    fn given_absent(
        &mut self,
        pc: u64,
        (number, arguments, answer): (u64, &[u64; 6], i64),
        absent: Absent,
    ) {
        let Some(call) = syscalls::get(number) else { return };
        let Absent { address, length, from, write } = absent;
        let given = &arguments[..call.arguments.len().min(arguments.len())];
        let (pointer, chain) = self.machine.kernel_pointer(given, address);
        let pointer = Pointer {
            block: pointer.block.filter(|id| !self.machine.is_from_before(Some(*id))),
            ..pointer
        };
        if pointer.block.is_some() {
            // Of a call that went well that has been judged by its block.
            if answer < 0 {
                let name = format!("the system call {}", call.name);
                self.judge(pointer, chain, Judged { pc, name, address, length, write });
            }
            return;
        }
        if length == 1 && call.number == syscalls::number::write {
            // A pipe tells whoever unwinds a stack whether there is a byte.
            return;
        }
        let Some(block) = self.machine.absent_block(address, length, from) else { return };
        let at = At {
            pc,
            values: vec![Value::Pointer(Pointer { address, block: Some(block) })],
            chains: [chain; 6],
            subject: Subject::Absent { call: call.name.to_owned(), address, length, from },
            width: length,
            releaser: 0,
            written: true,
            pointed: None,
        };
        let situation = Situation { pointer_state: PointerState::Freed, written: true };
        self.ask_of_access(&at, situation, (None, write));
    }
}
