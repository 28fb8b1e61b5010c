//! A jump that has replaced the stack pointer: `longjmp`, the last step of an exception. Which frame
//! it landed in is told by the stack pointer, and that by the first access to the stack around the
//! jump: often before it, mostly in the next few superblocks.

use super::format::address;
use crate::dependence::block::{Blocks, Exit};
use crate::dependence::stack::{Change, Tells};
use events::decode::Bases;

/// Superblocks that are looked through for an access to the stack. Code that goes without one for
/// longer is a loop in a function with a frame pointer.
const PATIENCE: u16 = 256;

/// A jump whose frame is looked for.
#[derive(Clone, Debug)]
pub struct NonLocalJump {
    /// Where in the open chunk it is told which frames were left.
    pub at: usize,
    /// The exit that it is the end of.
    pub exit: u32,
    /// Where it led.
    pub target: u64,
    /// From where the stack pointer was replaced to where it is now; none if that got lost.
    moved: Option<i64>,
    /// From where it was replaced to where the jump landed.
    landed: Option<i64>,
    /// What it was replaced by.
    stack: Option<u64>,
    /// An address within the frame, if `rbp` is a frame pointer.
    hint: Option<u64>,
    patience: u16,
}

/// A superblock as it was executed.
#[derive(Clone, Copy)]
pub struct Ran<'a> {
    pub blocks: &'a Blocks,
    pub exit: &'a Exit,
    pub payload: &'a [u8],
    pub bases: Bases,
}

impl NonLocalJump {
    /// The jump at the end of an exit, which replaced the stack pointer at `replaced`.
    pub fn new(at: usize, id: u32, ran: Ran<'_>, replaced: u16) -> Self {
        let mut jump = Self {
            at,
            exit: id,
            target: 0,
            moved: Some(0),
            landed: None,
            stack: None,
            hint: None,
            patience: PATIENCE,
        };
        jump.look(ran, replaced + 1);
        jump.landed = jump.moved;
        jump
    }

    /// Looks through what is executed next.
    pub fn follow(&mut self, ran: Ran<'_>) {
        self.patience -= 1;
        self.look(ran, 0);
    }

    /// The stack pointer where it landed, or at least an address in the same frame.
    pub fn stack(&self) -> Option<u64> {
        let exact = self.stack.zip(self.landed);
        exact.map(|(stack, landed)| stack.wrapping_add_signed(landed)).or(self.hint)
    }

    /// Whether nothing more is to be learned.
    pub fn is_over(&self) -> bool {
        self.stack.is_some() || self.moved.is_none() || self.patience == 0
    }

    fn look(&mut self, ran: Ran<'_>, from: u16) {
        let block = &ran.blocks.blocks[ran.exit.block as usize];
        for index in from..ran.exit.executed {
            let Some(moved) = self.moved else { return };
            let known = &ran.blocks.statics[block.instructions[usize::from(index)] as usize];
            let accesses = &block.accesses[block.accesses_of(index)];
            let place = |access| address(access, ran.payload, ran.bases);
            let told = match known.stack.tells {
                Tells::First(above) => accesses.first().and_then(place).zip(Some(above)),
                Tells::Last(above) => accesses.last().and_then(place).zip(Some(above)),
                Tells::Frame => {
                    self.hint = self.hint.or_else(|| accesses.first().and_then(place));
                    None
                }
                Tells::Nothing => None,
            };
            let stack = told.map(|(at, above)| at.wrapping_add_signed(-above - moved));
            self.stack = self.stack.or(stack);
            self.moved = match known.stack.change {
                Change::By(bytes) => Some(moved + bytes),
                Change::Replaced | Change::Within => None,
            };
        }
    }
}
