//! Calls of functions that are judged by their contracts.

use super::cells::Cell;
use super::chains::Node;
use super::{ARGUMENTS, Machine};
use crate::rules::state::{BlockId, NULL_PAGE, Pointer};

/// rdi, rsi, rdx, r10, r8, r9: what system calls are given.
const OF_SYSTEM_CALLS: [usize; 6] = [7, 6, 2, 10, 8, 9];

/// Buffers of a list that are looked at, and bytes that each has there (`struct iovec`).
const MOST_BUFFERS: u64 = 16;
const BUFFER_BYTES: u64 = 16;
/// How far from a block a buffer may begin that was made from it.
const NEAR: u64 = 4096;

impl Machine {
    /// One has been called, by the innermost call. What it returns is made from what was judged.
    pub fn enter_library(&mut self) {
        let thread = self.thread();
        thread.library = thread.calls.top().map(|(slot, _)| slot);
    }

    /// Where an argument of the call that was just made leads: a pointer there, and its chain.
    pub fn argument(&mut self, number: usize, address: u64) -> (Pointer, Node) {
        let cell = match ARGUMENTS.get(number) {
            Some(cell) if self.needs.pointers => self.running().cells[*cell],
            _ => return (Pointer { address, block: None }, Node::default()),
        };
        (Pointer { address, block: self.resolve(cell.tag, address) }, cell.node)
    }

    /// A pointer to what a system call with these arguments touched, and its chain. It is one of them; or
    /// what is touched lies in what one of them points to; or a pointer there stands in a list of buffers that the
    /// second leads to, by itself or by way of a message: then it is the one whose block is nearest.
    pub fn kernel_pointer(&mut self, arguments: &[u64], address: u64) -> (Pointer, Node) {
        if !self.needs.pointers {
            return (Pointer { address, block: None }, Node::default());
        }
        let given = |machine: &Self, at: usize| machine.running().cells[OF_SYSTEM_CALLS[at]];
        if let Some(at) = arguments.iter().position(|argument| *argument == address) {
            let cell = given(self, at);
            return (Pointer { address, block: self.resolve(cell.tag, address) }, cell.node);
        }
        let count = arguments.len().min(OF_SYSTEM_CALLS.len());
        let direct: Vec<Cell> = (0..count).map(|at| given(self, at)).collect();
        let listed = match arguments.get(1) {
            Some(list) if *list >= NULL_PAGE => self.listed(*list, address),
            _ => Vec::new(),
        };
        let near = |most: u64| {
            move |(found, _): &(Option<(u64, BlockId)>, Node)| {
                found.is_some_and(|(distance, _)| distance <= most)
            }
        };
        let place = |machine: &Self, cell: &Cell| (machine.apart(*cell, address), cell.node);
        let inside = direct.iter().map(|cell| place(self, cell)).filter(near(0));
        let buffers = listed.iter().map(|cell| place(self, cell)).filter(near(NEAR));
        let nearest = inside.chain(buffers).min_by_key(|(found, _)| found.map(|(by, _)| by));
        match nearest {
            Some((found, node)) => {
                (Pointer { address, block: found.map(|(_, block)| block) }, node)
            }
            None => (Pointer { address, block: None }, Node::default()),
        }
    }

    /// The pointers of a list of buffers (`struct iovec`), or of the list that a message has
    /// (`struct msghdr`).
    fn listed(&mut self, list: u64, address: u64) -> Vec<Cell> {
        let mut all = self.buffers(list);
        let message = self.memory.read(list.saturating_add(BUFFER_BYTES), &mut self.arithmetic);
        let inner = self.resolve(message.tag, address).and_then(|id| self.blocks.get(id));
        // Where in its block that list begins, nobody says.
        if let Some(begin) = inner.map(|block| block.facts.begin) {
            all.extend(self.buffers(begin));
        }
        all
    }

    fn buffers(&mut self, list: u64) -> Vec<Cell> {
        let entries = (0..MOST_BUFFERS).map(|entry| list.saturating_add(entry * BUFFER_BYTES));
        entries.map(|entry| self.memory.read(entry, &mut self.arithmetic)).collect()
    }

    /// The block of a pointer, and how far from it an address is.
    fn apart(&self, cell: Cell, address: u64) -> Option<(u64, BlockId)> {
        let id = self.resolve(cell.tag, address)?;
        self.blocks.get(id).map(|block| (block.distance(address), id))
    }
}
