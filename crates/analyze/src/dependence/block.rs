//! Static facts of superblocks, worked out once for each shape of the stream.

use super::compact::{self, Definition};
use super::control::Code;
use super::stack::{Change, Stack};
use crate::semantics::{Flow, Form, Meaning, Parts, Span};
use events::shape::{Access, Shape, Source};
use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// An instruction of the program, wherever superblocks contain it.
#[derive(Clone, Debug)]
pub struct Static {
    /// Its address.
    pub pc: u64,
    /// Its length.
    pub length: u8,
    /// What it does.
    pub meaning: Arc<Meaning>,
    /// What it does to the stack pointer.
    pub stack: Stack,
}

impl Static {
    /// The address of the next instruction.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.pc + u64::from(self.length)
    }
}

/// Something in a superblock that moves between frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// Which instruction.
    pub index: u16,
    /// Whether it calls; else it returns.
    pub call: bool,
    /// The access that writes or reads the return address.
    pub access: u16,
}

/// When an instruction must be looked at by someone who goes back and wants little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relevance {
    /// If it defines a register part that is wanted.
    Defines,
    /// Also if it stores to what is wanted.
    Stores,
    /// Also if a decision is wanted.
    Decides,
    /// Whatever is wanted.
    Always,
}

/// What of an instruction most can be passed by with.
#[derive(Clone, Copy, Debug)]
pub struct Quick {
    /// Register parts that it defines.
    pub defines: Parts,
    /// When it must be looked at.
    pub relevance: Relevance,
    /// Whether nothing but its flows matters to who keeps no edges: it is no branch, call, saved
    /// register or string instruction, and reads little.
    pub sets_only: bool,
    /// How many definitions it has in compact form, or what it looks at if it is a branch; 0 if it is
    /// neither that nor sets_only, or not simple.
    compact: u8,
    /// The first of them.
    first_compact: u32,
}

impl Quick {
    /// Whether it has definitions in compact form.
    #[must_use]
    #[inline]
    pub fn is_compact(&self) -> bool {
        self.compact > 0
    }
}

/// Reads of memory that an instruction has at most if it is sets_only.
pub const MOST_SET_READS: usize = 8;

/// A superblock.
#[derive(Debug)]
pub struct Superblock {
    /// Its instructions, as numbers of [`Static`]s.
    pub instructions: Vec<u32>,
    /// The same, for a quick look: side by side in memory.
    pub quick: Vec<Quick>,
    /// Their accesses, in order.
    pub accesses: Vec<Access>,
    /// Where the accesses of each instruction begin; one more entry than instructions.
    pub first_access: Vec<u16>,
    /// Accesses that write, by number, in order.
    pub stores: Vec<u16>,
    /// Calls and returns.
    pub crossings: Vec<Crossing>,
    /// Conditional branches and indirect jumps, by index.
    pub branches: Vec<u16>,
    /// Whether some accesses stand in records of their own, or repeat.
    pub irregular: bool,
}

/// A way in which a superblock can be left, whole or in the middle.
#[derive(Clone, Debug)]
pub struct Exit {
    /// The superblock.
    pub block: u32,
    /// Instructions that executed.
    pub executed: u16,
    /// Ticks that these were.
    pub ticks: u16,
    /// Whether the next one got some way (a repeated string instruction).
    pub interrupted: bool,
    /// Whether the last one is a conditional branch that was taken.
    pub taken: bool,
    /// Bytes of its fields.
    pub payload: u16,
    /// Register parts that its instructions define.
    pub defines: Parts,
    /// Register parts that its instructions use for anything.
    pub uses: Parts,
    /// How many of the block's stores were made.
    pub stores: u16,
    /// How many of its crossings.
    pub crossings: u16,
    /// How many of its branches.
    pub branches: u16,
    /// Where execution goes on, if that is known; 0 if not.
    pub next: u64,
    /// Whether it ends with an indirect jump.
    pub jumps: bool,
    /// Whether it ends with a system call.
    pub calls_kernel: bool,
    /// The instruction that replaced the stack pointer, if it ends with an indirect jump or a
    /// return behind one: that may lead into another frame.
    pub lands: Option<u16>,
}

impl Exit {
    /// Instructions that executed or got some way.
    #[must_use]
    pub fn begun(&self) -> u16 {
        self.executed + u16::from(self.interrupted)
    }
}

/// What someone who only passes an exit needs of it: small, so that all of them stay close by.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Instructions that executed.
    pub executed: u16,
    /// Ticks that these were.
    pub ticks: u16,
    /// Bytes of its fields.
    pub payload: u16,
}

/// In place of a superblock: it has not been seen.
const NO_BLOCK: u32 = u32::MAX;

/// How a superblock was left: instructions that executed, whether the next one got some way,
/// whether the last is a branch that was taken.
pub type Way = (u16, bool, bool);

/// All superblocks, exits and instructions of a stream.
#[derive(Default)]
pub struct Blocks {
    /// The instructions.
    pub statics: Vec<Static>,
    /// The superblocks.
    pub blocks: Vec<Superblock>,
    /// The exits.
    pub exits: Vec<Exit>,
    /// The exits again, in short.
    pub extents: Vec<Extent>,
    /// The definitions of sets_only instructions, in compact form.
    compact: Vec<Definition>,
    /// Which of them are those of each instruction: the first, how many.
    compact_of: Vec<(u32, u8)>,
    /// Superblocks that each instruction stands in.
    holders: Vec<Vec<u32>>,
    /// Exits of each superblock.
    by_block: Vec<Vec<u32>>,
    /// The superblocks of the stream that is read, by number of its shapes.
    numbers: Vec<u32>,
    /// Superblocks by where they begin.
    starts: FxHashMap<u64, Vec<u32>>,
    /// Instructions by address and bytes; code can change.
    known: FxHashMap<(u64, [u8; 15]), u32>,
    factory: Option<InstructionInfoFactory>,
}

impl Blocks {
    /// Another stream begins, which numbers its shapes anew.
    pub fn begin_stream(&mut self) {
        self.numbers.clear();
    }

    /// The number of an exit, which is made when first seen. `number` is that of the shape.
    pub fn exit(&mut self, number: u32, shape: &Shape, way: Way, payload: u16) -> u32 {
        let block = match self.numbers.get(number as usize) {
            Some(block) if *block != NO_BLOCK => *block,
            _ => {
                let block = self.find_block(shape).unwrap_or_else(|| self.add_block(shape));
                note_number(&mut self.numbers, number, block);
                block
            }
        };
        self.exit_of(block, way, payload).unwrap_or_else(|| {
            let exit = self.make_exit(block, way, payload);
            let (executed, ticks, payload) = (exit.executed, exit.ticks, exit.payload);
            self.extents.push(Extent { executed, ticks, payload });
            self.exits.push(exit);
            let id = self.exits.len() as u32 - 1;
            self.by_block[block as usize].push(id);
            id
        })
    }

    /// The number of an exit, if it is known. `numbers` has what is known of the stream's shapes.
    pub fn find_exit(
        &self,
        numbers: &mut Vec<u32>,
        number: u32,
        shape: &Shape,
        way: Way,
        payload: u16,
    ) -> Option<u32> {
        let block = match numbers.get(number as usize) {
            Some(block) if *block != NO_BLOCK => *block,
            _ => {
                let block = self.find_block(shape)?;
                note_number(numbers, number, block);
                block
            }
        };
        self.exit_of(block, way, payload)
    }

    #[inline]
    fn exit_of(&self, block: u32, way: Way, payload: u16) -> Option<u32> {
        let same = |id: &&u32| {
            let exit = &self.exits[**id as usize];
            (exit.executed, exit.interrupted, exit.taken) == way && exit.payload == payload
        };
        self.by_block[block as usize].iter().find(same).copied()
    }

    /// Whether the code of a program is not what was executed at the same addresses.
    #[must_use]
    pub fn differs_from(&self, code: &dyn Code) -> bool {
        self.known.iter().any(|((pc, bytes), id)| {
            let length = usize::from(self.statics[*id as usize].length.min(15));
            let mut there = [0; 15];
            code.read(*pc, &mut there[..length]) == length && there[..length] != bytes[..length]
        })
    }

    /// The definitions of an instruction in compact form; none if it has more to say.
    #[must_use]
    #[inline]
    pub fn compact(&self, quick: &Quick) -> &[Definition] {
        &self.compact[quick.first_compact as usize..][..quick.compact.into()]
    }

    /// Exits in which an instruction was executed, and how often in each.
    pub fn standing(&self, id: u32) -> impl Iterator<Item = (u32, u64)> {
        let exits =
            self.holders[id as usize].iter().flat_map(|block| &self.by_block[*block as usize]);
        exits.filter_map(move |number| {
            let exit = &self.exits[*number as usize];
            let block = &self.blocks[exit.block as usize];
            let ran = &block.instructions[..exit.executed.into()];
            let count = ran.iter().filter(|other| **other == id).count() as u64;
            (count > 0).then_some((*number, count))
        })
    }

    /// A superblock with the same instructions and accesses.
    fn find_block(&self, shape: &Shape) -> Option<u32> {
        let first = shape.instructions.first()?;
        let same = |number: &&u32| {
            let block = &self.blocks[**number as usize];
            block.instructions.len() == shape.instructions.len()
                && block.accesses == shape.accesses
                && block.instructions.iter().zip(&shape.instructions).all(|(id, instruction)| {
                    self.known.get(&(instruction.pc, whole(instruction))) == Some(id)
                })
        };
        self.starts.get(&first.pc)?.iter().find(same).copied()
    }

    fn add_block(&mut self, shape: &Shape) -> u32 {
        let block = self.block(shape);
        let number = self.blocks.len() as u32;
        for id in &block.instructions {
            let holders = &mut self.holders[*id as usize];
            if holders.last() != Some(&number) {
                holders.push(number);
            }
        }
        self.blocks.push(block);
        self.by_block.push(Vec::new());
        if let Some(first) = shape.instructions.first() {
            self.starts.entry(first.pc).or_default().push(number);
        }
        number
    }

    fn make_exit(&self, number: u32, (executed, interrupted, taken): Way, payload: u16) -> Exit {
        let block = &self.blocks[number as usize];
        let begun = executed + u16::from(interrupted);
        let ran = &block.instructions[..usize::from(begun).min(block.instructions.len())];
        let defines = ran.iter().fold(Parts::NONE, |all, instruction| {
            all | self.statics[*instruction as usize].meaning.defines
        });
        let uses = ran.iter().fold(Parts::NONE, |all, instruction| {
            all | self.statics[*instruction as usize].meaning.uses()
        });
        let accesses = block.first_access[ran.len()];
        let upto = |list: &[u16]| list.iter().filter(|index| **index < executed).count() as u16;
        let last =
            usize::from(executed).checked_sub(1).and_then(|last| block.instructions.get(last));
        let last = last.map(|last| &self.statics[*last as usize]);
        let first = || self.statics[block.instructions[0] as usize].pc;
        let (next, jumps) = match last {
            None => (first(), false),
            Some(last) => match last.meaning.form {
                Form::Branch(target) => (if taken { target } else { last.next() }, false),
                Form::Jump(target) | Form::Call(target) => (target, false),
                Form::IndirectJump => (0, true),
                Form::IndirectCall | Form::Return | Form::Stop => (0, false),
                Form::Plain | Form::Syscall => (last.next(), false),
            },
        };
        let mut exit = Exit {
            block: number,
            executed,
            ticks: 0,
            interrupted,
            taken,
            payload,
            defines,
            uses,
            stores: block.stores.iter().filter(|store| **store < accesses).count() as u16,
            crossings: block.crossings.iter().filter(|c| c.index < executed).count() as u16,
            branches: upto(&block.branches),
            next,
            jumps,
            calls_kernel: last.is_some_and(|last| last.meaning.form == Form::Syscall),
            lands: self.lands(&block.instructions[..executed.into()]),
        };
        exit.ticks = self.ticks_before(&exit, executed);
        exit
    }

    /// Ticks that the first so many instructions of an exit were. Only the last one that executed can be a
    /// conditional branch that was taken: superblocks run on past the others.
    pub fn ticks_before(&self, exit: &Exit, index: u16) -> u16 {
        let instructions = &self.blocks[exit.block as usize].instructions;
        let ran = (1..).zip(instructions).take(index.min(exit.executed).into());
        let is_tick = |(number, id): &(u16, &u32)| {
            let known = &self.statics[**id as usize];
            known.meaning.form.is_tick(known.pc, exit.taken && *number == exit.executed)
        };
        ran.filter(is_tick).count() as u16
    }

    /// Which of these instructions replaced the stack pointer before the last one jumped or
    /// returned.
    fn lands(&self, ran: &[u32]) -> Option<u16> {
        let known = |id: &u32| &self.statics[*id as usize];
        let (last, before) = ran.split_last()?;
        matches!(known(last).meaning.form, Form::IndirectJump | Form::Return).then_some(())?;
        let replaced = before.iter().rposition(|id| known(id).stack.change == Change::Replaced)?;
        let calls = |id: &u32| known(id).meaning.form.is_call();
        (!before[replaced..].iter().any(calls)).then_some(replaced as u16)
    }

    fn block(&mut self, shape: &Shape) -> Superblock {
        let mut block = Superblock::empty();
        let count = shape.instructions.len();
        block.accesses.clone_from(&shape.accesses);
        block.instructions.reserve_exact(count);
        block.quick.reserve_exact(count);
        block.first_access = Vec::with_capacity(count + 1);
        for (index, instruction) in (0u16..).zip(&shape.instructions) {
            let id = self.instruction(instruction);
            block.instructions.push(id);
            let first = shape.accesses.partition_point(|access| access.index < index) as u16;
            block.first_access.push(first);
            let meaning = &self.statics[id as usize].meaning;
            let form = meaning.form;
            let own = shape.accesses.iter().enumerate().skip(first.into());
            let mut own = own.take_while(|(_, access)| access.index == index);
            let irregular =
                |access: &Access| matches!(access.source, Source::Explicit | Source::Repeat { .. });
            let relevance = match form {
                _ if own.clone().any(|(_, access)| irregular(access)) => Relevance::Always,
                _ if meaning.repeats.is_some() => Relevance::Always,
                Form::Branch(_) | Form::Jump(_) | Form::IndirectJump => Relevance::Decides,
                Form::Plain | Form::Stop if meaning.writes().next().is_some() => Relevance::Stores,
                Form::Plain | Form::Stop => Relevance::Defines,
                _ => Relevance::Always,
            };
            let sets_only =
                matches!(relevance, Relevance::Defines | Relevance::Stores) && fits_sets(meaning);
            let (first_compact, compact) = if sets_only || relevance == Relevance::Decides {
                self.compact_of[id as usize]
            } else {
                (0, 0)
            };
            let defines = meaning.defines;
            block.quick.push(Quick { defines, relevance, sets_only, compact, first_compact });
            match form {
                Form::Call(_) | Form::IndirectCall => {
                    if let Some((access, _)) = own.find(|(_, access)| access.write) {
                        block.crossings.push(Crossing { index, call: true, access: access as u16 });
                    }
                }
                // Behind a replaced stack pointer it need not return from the innermost frame.
                Form::Return if self.lands(&block.instructions).is_none() => {
                    if let Some((access, _)) = own.next() {
                        block.crossings.push(Crossing {
                            index,
                            call: false,
                            access: access as u16,
                        });
                    }
                }
                Form::Branch(_) | Form::IndirectJump => block.branches.push(index),
                _ => {}
            }
        }
        block.first_access.push(shape.accesses.len() as u16);
        for (number, access) in (0u16..).zip(&shape.accesses) {
            match access.source {
                Source::Repeat { .. } | Source::Explicit => block.irregular = true,
                _ if access.write => block.stores.push(number),
                _ => {}
            }
        }
        block
    }

    fn instruction(&mut self, instruction: &events::shape::Instruction) -> u32 {
        let bytes = whole(instruction);
        if let Some(known) = self.known.get(&(instruction.pc, bytes)) {
            return *known;
        }
        let factory = self.factory.get_or_insert_with(InstructionInfoFactory::new);
        let decoded =
            Decoder::with_ip(64, instruction.code(), instruction.pc, DecoderOptions::NONE).decode();
        let meaning = Arc::new(Meaning::of(&decoded, factory));
        let compact = compact::of(&meaning).unwrap_or_default();
        self.compact_of.push((self.compact.len() as u32, compact.len() as u8));
        self.compact.extend(compact);
        let (pc, length, stack) = (instruction.pc, instruction.length, Stack::of(&decoded));
        self.statics.push(Static { pc, length, meaning, stack });
        self.holders.push(Vec::new());
        let id = self.statics.len() as u32 - 1;
        self.known.insert((instruction.pc, bytes), id);
        id
    }
}

/// The bytes of an instruction, with nothing behind them.
fn whole(instruction: &events::shape::Instruction) -> [u8; 15] {
    let mut bytes = instruction.bytes;
    bytes[usize::from(instruction.length.min(15))..].fill(0);
    bytes
}

/// Whether the flows of an instruction are all that matters of it, and are small.
fn fits_sets(meaning: &Meaning) -> bool {
    let small = |span: &Span| span.bytes <= 64;
    let (mut reads, mut all_small) = (0, true);
    for flow in &meaning.flows {
        match flow {
            Flow::Copy { to, from } => {
                reads += 1;
                all_small &= small(to) && small(from);
            }
            Flow::Make { write, uses, .. } => {
                reads += uses.reads.len();
                all_small &= write.iter().chain(&uses.reads).all(small);
            }
        }
    }
    all_small && reads <= MOST_SET_READS && meaning.shuttle.is_none() && !meaning.frame
}

fn note_number(numbers: &mut Vec<u32>, number: u32, block: u32) {
    if numbers.len() <= number as usize {
        numbers.resize(number as usize + 1, NO_BLOCK);
    }
    numbers[number as usize] = block;
}

impl Superblock {
    fn empty() -> Self {
        Self {
            instructions: Vec::new(),
            quick: Vec::new(),
            accesses: Vec::new(),
            first_access: vec![0],
            stores: Vec::new(),
            crossings: Vec::new(),
            branches: Vec::new(),
            irregular: false,
        }
    }

    /// How many accesses the first so many instructions make.
    #[must_use]
    pub fn accesses_upto(&self, instructions: u16) -> usize {
        let last = self.first_access.len() - 1;
        self.first_access[usize::from(instructions).min(last)].into()
    }

    /// The accesses of an instruction.
    #[must_use]
    pub fn accesses_of(&self, index: u16) -> std::ops::Range<usize> {
        let index = usize::from(index);
        usize::from(self.first_access[index])..usize::from(self.first_access[index + 1])
    }
}
