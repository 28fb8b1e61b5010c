//! The close look at accesses that may not pass the shadow.

use crate::runner::cpu::{self, Registers};
use crate::runner::engine::Engine;
use crate::runner::explicit;
use crate::runner::thread::Thread;
use crate::runner::translate::accesses::{self, Accesses};
use events::shape::Segment;
use events::suspicion::{Access, Suspicion};
use iced_x86::{Instruction, InstructionInfoFactory};

/// The accesses of the instruction that is next.
pub fn look(engine: &mut Engine, thread: &Thread, instruction: &Instruction) {
    let registers = engine.cpu.registers;
    let mut put = |write, address, size| {
        engine.test(registers.pc, Access { address, size, write });
    };
    explicit::each(instruction, &registers, &thread.vector, &mut put);
}

/// A string instruction has repeated from what registers were `before` to what they are now.
pub fn look_back(engine: &mut Engine, before: &Registers) {
    let instruction = engine.decode_one(before.pc);
    let mut factory = InstructionInfoFactory::new();
    let Accesses::Repeat { size, source, compares, writes, narrow, segment } =
        accesses::of(&instruction, &mut factory)
    else {
        return;
    };
    let mask = if narrow { 0xffff_ffff } else { u64::MAX };
    let after = &engine.cpu.registers;
    let done = before.general[1].wrapping_sub(after.general[1]) & mask;
    let down = before.flags & DIRECTION != 0;
    let base = match segment {
        Segment::Flat => 0,
        Segment::Fs => before.fs,
        Segment::Gs => cpu::gs_base(),
    };
    let reaches =
        [(source, before.general[6].wrapping_add(base)), (compares || writes, before.general[7])];
    if !narrow
        && !reaches.iter().any(|(there, at)| *there && engine.is_painted(*at, done, size, down))
    {
        return;
    }
    for step in 0..done {
        let distance = step.wrapping_mul(u64::from(size));
        let moved = |start: u64| {
            let at = if down { start.wrapping_sub(distance) } else { start.wrapping_add(distance) };
            at & mask
        };
        let from = moved(before.general[6]).wrapping_add(base);
        let to = moved(before.general[7]);
        for (there, write, address) in
            [(source, false, from), (compares, false, to), (writes, true, to)]
        {
            if there {
                let access = Access { address, size: u32::from(size), write };
                engine.test(before.pc, access);
            }
        }
    }
}

/// Set while string instructions go downwards.
const DIRECTION: u64 = 0x400;

impl Engine {
    /// Whether anything may be painted where so many elements are.
    fn is_painted(&self, at: u64, elements: u64, size: u16, down: bool) -> bool {
        let Some(shadow) = &self.observed.screens.shadow else { return false };
        let bytes = elements.wrapping_mul(u64::from(size));
        let start = if down { at.wrapping_add(u64::from(size)).wrapping_sub(bytes) } else { at };
        shadow.has_any(start, bytes)
    }

    /// Tests one access exactly.
    fn test(&mut self, pc: u64, access: Access) {
        let Some(shadow) = &self.observed.screens.shadow else { return };
        let bits = shadow.bits(access.address, access.size);
        if bits == 0 {
            return;
        }
        match self.config.plan.shadow() {
            Some(asked) if bits & if access.write { asked.writes } else { asked.reads } != 0 => {
                self.suspect(pc, Suspicion::Painted { access, bits });
            }
            Some(_) => {}
            None => self.look_at_blocks(pc, access, bits),
        }
    }
}
