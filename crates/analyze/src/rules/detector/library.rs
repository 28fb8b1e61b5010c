//! Functions of the C library that are judged by their contracts: what they will touch is told when they are
//! called, so what their vector code does inside is nobody's concern.

use super::*;
use contracts::{Contract, Deed, Touched};
use events::decode::Touch;
use std::cmp::Reverse;

/// No memory is longer.
const LONGEST: u64 = 1 << 62;

/// The functions with contracts.
#[derive(Clone, Default)]
pub struct Library {
    names: FxHashMap<u64, String>,
    /// Their code, by where it begins.
    code: Vec<Range<u64>>,
}

impl Library {
    fn add(&mut self, name: &str, code: Range<u64>) {
        let rank = |name: &str| (name.starts_with('_'), Reverse(name.len()), name.to_owned());
        let known = self.names.entry(code.start).or_insert_with(|| name.to_owned());
        if rank(name) < rank(known) {
            name.clone_into(known);
        }
        let at = self.code.partition_point(|known| known.start < code.start);
        match self.code.get_mut(at).filter(|known| known.start == code.start) {
            Some(known) => *known = code,
            None => self.code.insert(at, code),
        }
    }

    /// Whether an instruction is part of one.
    pub fn is_judged(&self, pc: u64) -> bool {
        let at = self.code.partition_point(|code| code.start <= pc);
        at > 0 && self.code[at - 1].contains(&pc)
    }

    /// Whether any of them is in a range.
    fn is_inside(&self, range: &Range<u64>) -> bool {
        let at = self.code.partition_point(|code| code.start < range.start);
        self.code.get(at).is_some_and(|code| code.start < range.end)
    }
}

/// Bytes that a function or the kernel touches for the program.
pub struct Judged {
    /// Where: the function, or the call that led to the system call.
    pub pc: u64,
    /// Who.
    pub name: String,
    /// Where the bytes begin.
    pub address: u64,
    /// How many they are.
    pub length: u64,
    /// Whether they are written.
    pub write: bool,
}

impl Detector {
    /// A function with a contract is at an address; its calls will be told.
    pub fn add_contract(&mut self, name: &str, code: Range<u64>) {
        self.library.add(name, code);
    }

    /// Whether a vector may be read past the end of a block. That is the right of the C library where an
    /// aligned vector holds a byte of the block; of its loader, whose functions have no names, always.
    pub(super) fn may_read_ahead(&self, pc: u64, access: &Access, pointer: &Pointer) -> bool {
        let Some(library) = self.lenient.iter().find(|range| range.contains(&pc)) else {
            return false;
        };
        if !self.library.is_inside(library) {
            return true;
        }
        let block = pointer.block.and_then(|id| self.machine.blocks.get(id));
        let end = access.address.saturating_add(u64::from(access.size));
        let meets = block.is_some_and(|block| {
            access.address < block.end() && end > block.facts.begin && block.is_live()
        });
        meets && access.address.is_multiple_of(u64::from(access.size.max(1)))
    }

    /// A function with a contract has been called.
    pub fn touch(&mut self, touch: &Touch) {
        let Touch { function, touched } = touch;
        self.machine.enter_library();
        if self.machine.is_inside() {
            return;
        }
        self.machine.clock.here = (0, *function);
        let name = self.library.names.get(function).cloned().unwrap_or_default();
        self.steered_by(*function, contracts::named(&name).map_or(0, Contract::steering));
        match touched.deed {
            Deed::Reads | Deed::Writes => self.touched_range(*function, name, touched),
            Deed::Decides => self.decides(*function, touched),
        }
    }

    /// Pointers and counts may themselves be something that nobody wrote. `arguments` is a set of bits.
    fn steered_by(&mut self, function: u64, arguments: u8) {
        for (number, cell) in ARGUMENTS.into_iter().enumerate() {
            let registers = &mut self.machine.thread().registers;
            let register = cell as u8;
            if arguments >> number & 1 == 0 || registers.general(register) == 0 {
                continue;
            }
            let origin = registers.origin_of_general(register);
            // Once told, what follows from it is no news.
            registers.set_general(register, 0, None);
            self.unwritten_use(function, origin);
        }
    }

    fn touched_range(&mut self, function: u64, name: String, touched: &Touched) {
        let Touched { argument, deed, address, length } = *touched;
        let (pointer, chain) = self.machine.argument(usize::from(argument), address);
        let write = deed == Deed::Writes;
        self.judge(pointer, chain, Judged { pc: function, name, address, length, write });
    }

    /// Asks rules about accesses what they say of bytes that somebody touches for the program.
    pub(super) fn judge(&mut self, mut pointer: Pointer, chain: Node, judged: Judged) {
        let Judged { pc, name, address, length, write } = judged;
        if self.machine.is_from_before(pointer.block) {
            // At NULL there is nothing, whatever the pointer was made from.
            if address >= NULL_PAGE {
                self.not_known(pc);
                return;
            }
            pointer.block = None;
        }
        let pointer_state = self.pointer_state(&mut pointer, length, pc);
        let situation = Situation { pointer_state, written: true };
        if !self.screens[usize::from(write)].admits(situation) {
            return;
        }
        let at = At {
            pc,
            values: vec![Value::Pointer(pointer)],
            chains: [chain; 6],
            subject: Subject::Library { function: name, address, length, write },
            // Rules calculate with signed numbers, and a count below zero is a very large one.
            width: length.min(LONGEST),
            releaser: 0,
            written: true,
            pointed: None,
        };
        self.ask_of_access(&at, situation, (pointer.block, write));
    }

    /// What a function does depends on bytes that nobody wrote.
    fn decides(&mut self, function: u64, touched: &Touched) {
        let Touched { address, length, .. } = *touched;
        if !self.machine.watches_writes {
            return;
        }
        if let Some(at) = self.machine.unwritten.first(address, length) {
            let here = Origin { pc: function, address: at, size: 1 };
            self.unwritten_use(function, self.machine.unwritten.origin(here));
            // Once told, what follows from it is no news.
            self.machine.unwritten.remove(address, length);
        }
    }
}
