//! What did not happen: decisions that kept a variable from being changed again before it was used.
//!
//! A wrong value is often one that nobody has corrected: the count stayed 0 because a condition was never true, the
//! list is too short because its loop ended early. Slices go along what was executed and do not see that. Here,
//! for a value that was used, the stores to the same variable in the function that wrote it last are looked for
//! in the code, and the branches that decide about them; those that were executed between the last write and
//! the use kept them from happening ("potential dependences").
//!
//! A variable is recognised by its operand: a place in the frame, or a fixed address. What a library changed is
//! told by the call of it in the program's own code, which could have been made once more.

use super::graph::{Because, Kind, Node, Slice, What};
use crate::dependence::Trace;
use crate::dependence::control::Control;
use crate::dependence::query::Executed;
use crate::dependence::trace::Item;
use base::Address;
use base::StepCount;
use iced_x86::{Decoder, DecoderOptions, Instruction, OpAccess, OpKind, Register};
use iced_x86::{InstructionInfoFactory, InstructionInfoOptions};
use rustc_hash::{FxHashMap, FxHashSet};
use symbols::Program;

/// Uses of values whose variables are looked at, the nearest first.
const MOST_USES: usize = 12;
/// Decisions that are told.
const MOST: usize = 3;
/// Records of the trace that are gone through for one use.
const LONGEST: u32 = 200_000;
/// The same for all uses of an explanation together.
const LONGEST_OF_ALL: u32 = 3_000_000;
/// Bytes of a function that are looked through.
const LONGEST_FUNCTION: u64 = 64 << 10;

/// A decision that kept something from happening.
#[derive(Clone, Debug)]
pub struct Omitted {
    /// The branch, when it last went that way.
    pub branch: Executed,
    /// The instruction of the program's own that wrote the value which was used instead.
    pub instead: u64,
}

/// A place that an instruction stores to, as its code names it; of an array whichever element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Variable {
    base: Register,
    displacement: u64,
}

/// Looks for omissions behind the values of slices.
pub struct Finder<'a> {
    trace: &'a Trace,
    program: &'a Program,
    control: &'a Control,
    /// The stores of functions, by entry.
    stores: FxHashMap<u64, Vec<(u64, Variable)>>,
    factory: InstructionInfoFactory,
    /// Records that may still be gone through.
    left: u32,
}

impl<'a> Finder<'a> {
    /// For a trace, its program and the decisions in it.
    pub fn new(trace: &'a Trace, program: &'a Program, control: &'a Control) -> Self {
        let (stores, factory) = (FxHashMap::default(), InstructionInfoFactory::new());
        Self { trace, program, control, stores, factory, left: LONGEST_OF_ALL }
    }

    /// The decisions behind a slice, the nearest first. `own` gives the program's own instruction that a node
    /// stands for.
    pub fn find(&mut self, slice: &Slice, own: &dyn Fn(&Node) -> Option<u64>) -> Vec<Omitted> {
        let mut found: Vec<Omitted> = Vec::new();
        let mut looked_at = FxHashSet::default();
        let edges = slice.edges.iter().filter(|edge| {
            edge.kind == Kind::Value && matches!(edge.because, Because::Memory { .. })
        });
        let mut uses: Vec<(&Node, &Node)> = edges
            .map(|edge| (&slice.nodes[edge.user as usize], &slice.nodes[edge.on as usize]))
            .filter(|(_, written)| written.what == What::Executed)
            .collect();
        uses.sort_by_key(|(_, written)| (written.depth, std::cmp::Reverse(written.moment)));
        for (user, written) in uses {
            if found.len() >= MOST || looked_at.len() >= MOST_USES {
                break;
            }
            let Some(instead) = own(written) else { continue };
            if !looked_at.insert(instead) {
                continue;
            }
            let branches = self.deciding(written, instead);
            let window = (written.moment, user.moment);
            let Some(branch) = self.last(&branches, written.thread, window) else { continue };
            if found.iter().all(|other| other.branch.instruction != branch.instruction) {
                found.push(Omitted { branch, instead });
            }
        }
        found
    }

    /// The decisions that kept variables from being written at all, of which a slice found that nothing had
    /// written them since their function was entered.
    pub fn unwritten(&mut self, slice: &Slice) -> Vec<Omitted> {
        let mut found: Vec<Omitted> = Vec::new();
        let mut looked_at = FxHashSet::default();
        for (node, address) in &slice.unwritten {
            let user = &slice.nodes[*node as usize];
            let Some(pc) = user.instruction.map(|id| self.trace.blocks.statics[id as usize].pc)
            else {
                continue;
            };
            let frame = &slice.frames[user.frame as usize];
            if found.len() >= MOST
                || looked_at.len() >= MOST_USES
                || !looked_at.insert((pc, *address))
            {
                continue;
            }
            // Where the frame pointer is, if there is one.
            let displacement = address.wrapping_sub(frame.slot.wrapping_sub(8));
            let variable = Variable { base: Register::RBP, displacement };
            let writers = self.stores_to(pc, Some(variable));
            let branches = self.branches(&writers);
            let entered = frame.caller.map_or(StepCount(0), |(.., moment)| moment);
            let Some(branch) = self.last(&branches, user.thread, (entered, user.moment)) else {
                continue;
            };
            if found.iter().all(|other| other.branch.instruction != branch.instruction) {
                found.push(Omitted { branch, instead: pc });
            }
        }
        found
    }

    /// The branches that decide about further writes of what was written.
    fn deciding(&mut self, written: &Node, instead: u64) -> FxHashSet<u64> {
        let pc = written.instruction.map(|id| self.trace.blocks.statics[id as usize].pc);
        let mut writers = match pc {
            Some(pc) if pc == instead => self.writers(pc),
            // A library wrote it: the call could have been made again.
            _ => Vec::new(),
        };
        writers.push(instead);
        self.branches(&writers)
    }

    /// The branches that decide about instructions.
    fn branches(&self, pcs: &[u64]) -> FxHashSet<u64> {
        let nodes = pcs.iter().filter_map(|pc| self.control.node(*pc));
        nodes.flat_map(|node| self.control.parents(node)).copied().collect()
    }

    /// The instructions of the same function that store to the same variable.
    fn writers(&mut self, pc: u64) -> Vec<u64> {
        let stores = self.stores_around(pc);
        let own = stores.iter().find(|(at, _)| *at == pc).map(|(_, variable)| *variable);
        self.stores_to(pc, own)
    }

    /// The instructions of the function of an address that store to a variable.
    fn stores_to(&mut self, pc: u64, wanted: Option<Variable>) -> Vec<u64> {
        let stores = self.stores_around(pc).iter();
        stores.filter(|(_, variable)| Some(*variable) == wanted).map(|(at, _)| *at).collect()
    }

    /// All stores of the function of an address.
    fn stores_around(&mut self, pc: u64) -> &[(u64, Variable)] {
        let Some(function) = self.program.function_at(Address(pc)) else { return &[] };
        let entry = function.entry.0;
        if !self.stores.contains_key(&entry) {
            let ranges = function.ranges.iter().map(|range| (range.start.0, range.end.0));
            let stores = ranges.flat_map(|range| self.stores_of(range)).collect();
            self.stores.insert(entry, stores);
        }
        &self.stores[&entry]
    }

    fn stores_of(&mut self, (start, end): (u64, u64)) -> Vec<(u64, Variable)> {
        let length = end.saturating_sub(start).min(LONGEST_FUNCTION);
        let mut code = vec![0; length as usize];
        if !self.program.code_bytes(Address(start), &mut code) {
            return Vec::new();
        }
        let mut decoder = Decoder::with_ip(64, &code, start, DecoderOptions::NONE);
        let mut stores = Vec::new();
        for instruction in &mut decoder {
            let variable = stored(&instruction, &mut self.factory);
            stores.extend(variable.map(|variable| (instruction.ip(), variable)));
        }
        stores
    }

    /// The last execution of one of these branches by a thread between two moments.
    fn last(
        &mut self,
        branches: &FxHashSet<u64>,
        thread: u32,
        (from, to): (StepCount, StepCount),
    ) -> Option<Executed> {
        if branches.is_empty() {
            return None;
        }
        let blocks = &self.trace.blocks;
        let mut back = self.trace.backward_from(to);
        for _ in 0..LONGEST.min(self.left) {
            self.left -= 1;
            let (when, item) = back.previous()?;
            let Item::Path { exit, .. } = item else { continue };
            let exit = &blocks.exits[exit as usize];
            if when.moment.0 + u64::from(exit.executed) <= from.0 {
                return None;
            }
            if when.thread != thread {
                continue;
            }
            let block = &blocks.blocks[exit.block as usize];
            for index in (0..usize::from(exit.executed)).rev() {
                let (id, moment) =
                    (block.instructions[index], StepCount(when.moment.0 + index as u64));
                if from < moment
                    && moment < to
                    && branches.contains(&blocks.statics[id as usize].pc)
                {
                    return Some(Executed {
                        moment,
                        thread,
                        instruction: id,
                        addresses: Vec::new(),
                    });
                }
            }
        }
        None
    }
}

/// The variable that an instruction stores to, if its code names it.
fn stored(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Option<Variable> {
    if instruction.op0_kind() != OpKind::Memory {
        return None;
    }
    let info = factory.info_options(instruction, InstructionInfoOptions::NO_REGISTER_USAGE);
    let writes = matches!(info.op0_access(), OpAccess::Write | OpAccess::ReadWrite);
    let base = instruction.memory_base();
    let named = matches!(base, Register::RBP | Register::RSP | Register::RIP | Register::None);
    let displacement = instruction.memory_displacement64();
    (writes && named).then_some(Variable { base, displacement })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_known_by_their_operand() {
        let mut factory = InstructionInfoFactory::new();
        let mut variable =
            |bytes: &[u8]| stored(&Decoder::with_ip(64, bytes, 0x1000, 0).decode(), &mut factory);
        let local = |displacement: i64| {
            Some(Variable { base: Register::RBP, displacement: displacement as u64 })
        };
        assert_eq!(variable(&[0xc7, 0x45, 0xfc, 0, 0, 0, 0]), local(-4), "mov dword [rbp-4], 0");
        assert_eq!(variable(&[0x83, 0x45, 0xfc, 1]), local(-4), "add dword [rbp-4], 1");
        assert_eq!(variable(&[0x83, 0x7d, 0xfc, 1]), None, "cmp dword [rbp-4], 1");
        assert_eq!(variable(&[0x8b, 0x45, 0xfc]), None, "mov eax, [rbp-4]");
        assert_eq!(variable(&[0x89, 0x04, 0x8a]), None, "mov [rdx+rcx*4], eax");
        let fixed = variable(&[0x89, 0x05, 0x10, 0, 0, 0]);
        assert_eq!(fixed, Some(Variable { base: Register::RIP, displacement: 0x1016 }));
    }
}
