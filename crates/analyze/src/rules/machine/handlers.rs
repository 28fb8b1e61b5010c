//! What signals do to a thread: its registers go to the stack, and come back from there when the handler
//! returns, which may have changed them.

use super::Machine;
use super::cells::Cell;
use super::code::CELLS;
use super::registers::Registers;

/// Bytes that the kernel writes at most.
const MOST: u64 = 16 << 10;
/// rdx, rsi and rdi: what a handler is given.
const GIVEN: [u8; 3] = [2, 6, 7];
/// Where the kernel puts the general registers, from the stack pointer of a handler on, and in which order;
/// rsp goes without saying.
const GENERAL: u64 = 48;
const ORDER: [usize; 15] = [8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1];
/// Handlers that may be at work in each other. Those that were left by a jump stay until then.
const DEEPEST: usize = 32;

/// A thread as it was when a handler began.
#[derive(Clone)]
pub(super) struct Interrupted {
    cells: [Cell; CELLS],
    registers: Registers,
    stack: Option<u64>,
    frame: Option<u64>,
    /// The stack pointer of the handler.
    at: u64,
}

impl Machine {
    /// A signal handler comes next: the kernel has written what it returns by, and what it is given, from
    /// `frame` on; the thread's stack pointer was `stack`, perhaps of another stack.
    pub fn handles(&mut self, stack: u64, frame: u64) {
        let length = stack.checked_sub(frame).filter(|length| *length <= MOST).unwrap_or(MOST);
        self.kernel_wrote(frame, length);
        let Self { threads, memory, needs, .. } = self;
        let thread = threads.now_mut();
        if needs.pointers {
            for (slot, register) in (0..).zip(ORDER) {
                memory.store(frame + GENERAL + 8 * slot, thread.cells[register]);
            }
        }
        if thread.interrupted.len() >= DEEPEST {
            thread.interrupted.remove(0);
        }
        thread.interrupted.push(Interrupted {
            cells: thread.cells,
            registers: thread.registers.clone(),
            stack: Some(stack),
            frame: thread.frame,
            at: frame,
        });
        thread.stack = Some(frame);
        for register in GIVEN {
            thread.cells[register as usize] = Cell::default();
            thread.registers.set_general(register, 0, None);
        }
    }

    /// A signal handler has returned.
    pub(super) fn handled(&mut self) {
        let unknown = self.unknown();
        let Self { threads, memory, needs, .. } = self;
        let thread = threads.now_mut();
        let Some(before) = thread.interrupted.pop() else {
            // It began before anything was known.
            thread.cells.fill(unknown);
            thread.registers = Registers::default();
            (thread.stack, thread.frame) = (None, None);
            return;
        };
        let Interrupted { cells, registers, stack, frame, at } = before;
        (thread.cells, thread.registers) = (cells, registers);
        (thread.stack, thread.frame) = (stack, frame);
        if needs.pointers {
            for (slot, register) in (0..).zip(ORDER) {
                thread.cells[register] = memory.load(at + GENERAL + 8 * slot);
            }
        }
    }
}
