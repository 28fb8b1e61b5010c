//! A stopped process: its registers, its memory, and its vector registers.

use super::decode::vector_store;
use nix::errno::Errno;
use nix::libc::user_regs_struct;
use nix::sys::ptrace::{self, regset};
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use std::io::{IoSlice, IoSliceMut};

/// General registers, flags and segment bases as ptrace has them.
pub type Registers = user_regs_struct;

pub struct Process {
    pub pid: Pid,
}

impl Process {
    pub fn registers(&self) -> Result<Registers, Errno> {
        ptrace::getregs(self.pid)
    }

    /// Reads `pieces`, one behind the other, into `buffer`; returns how many bytes came. Stops at
    /// the first piece that is not wholly mapped.
    pub fn read(&self, pieces: &[(u64, usize)], buffer: &mut [u8]) -> usize {
        let remote: Vec<RemoteIoVec> = pieces
            .iter()
            .map(|(address, len)| RemoteIoVec { base: *address as usize, len: *len })
            .collect();
        process_vm_readv(self.pid, &mut [IoSliceMut::new(buffer)], &remote).unwrap_or(0)
    }

    /// Up to 15 bytes of code at `pc`, fewer at the end of a mapping.
    pub fn code(&self, pc: u64) -> ([u8; 15], usize) {
        let mut bytes = [0; 15];
        let first = 15.min((0x1000 - pc % 0x1000) as usize);
        let count =
            self.read(&[(pc, first), (pc.wrapping_add(first as u64), 15 - first)], &mut bytes);
        (bytes, count)
    }

    /// Writes to writable memory.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        let remote = [RemoteIoVec { base: address as usize, len: bytes.len() }];
        process_vm_writev(self.pid, &[IoSlice::new(bytes)], &remote).map(|_| ())
    }

    /// The low 16 bytes of the vector registers.
    pub fn xmm(&self, number: usize) -> Result<[u8; 16], Errno> {
        let state = ptrace::getregset::<regset::NT_PRFPREG>(self.pid)?;
        Ok(lanes(&state.xmm_space[4 * number..4 * number + 4]))
    }

    /// An MMX register.
    pub fn mm(&self, number: usize) -> Result<[u8; 16], Errno> {
        let state = ptrace::getregset::<regset::NT_PRFPREG>(self.pid)?;
        // The x87 stack is stored from its top; the MMX registers lie below it in fixed places.
        let top = usize::from(state.swd >> 11 & 7);
        let at = 4 * ((number + 8 - top) % 8);
        Ok(lanes(&state.st_space[at..at + 4]))
    }

    /// All 32 bytes of a vector register. No safe interface hands out the upper halves, so the
    /// process stores the register itself: one store is put in place of its next instruction,
    /// stepped over, and undone.
    pub fn ymm(&self, number: usize) -> Result<[u8; 32], Errno> {
        let registers = self.registers()?;
        let room = self.room(registers.rsp).ok_or(Errno::EFAULT)?;
        let (saved_code, count) = self.code(registers.rip);
        let store = vector_store(number);
        if count < store.len() {
            return Err(Errno::EFAULT);
        }
        let mut saved_room = [0; 32];
        self.read(&[(room, 32)], &mut saved_room);
        self.poke(registers.rip, &store)?;
        ptrace::setregs(self.pid, Registers { rsp: room, ..registers })?;
        ptrace::step(self.pid, None)?;
        waitpid(self.pid, None)?;
        let mut value = [0; 32];
        self.read(&[(room, 32)], &mut value);
        self.write(room, &saved_room)?;
        self.poke(registers.rip, &saved_code[..store.len()])?;
        ptrace::setregs(self.pid, registers)?;
        Ok(value)
    }

    /// 32 bytes that can be written: at the stack pointer, or else in any writable mapping.
    fn room(&self, stack: u64) -> Option<u64> {
        let is_writable = |address: &u64| {
            let mut bytes = [0; 32];
            self.read(&[(*address, 32)], &mut bytes) == 32 && self.write(*address, &bytes).is_ok()
        };
        if is_writable(&stack) {
            return Some(stack);
        }
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid)).unwrap_or_default();
        maps.lines()
            .filter(|line| line.contains(" rw"))
            .filter_map(|line| u64::from_str_radix(line.split('-').next()?, 16).ok())
            .find(is_writable)
    }

    /// Writes code, also where the process itself may not write.
    pub fn poke(&self, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        let mut word = ptrace::read(self.pid, address as *mut _)?.to_le_bytes();
        word[..bytes.len()].copy_from_slice(bytes);
        ptrace::write(self.pid, address as *mut _, i64::from_le_bytes(word))
    }
}

fn lanes(words: &[u32]) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (chunk, word) in bytes.chunks_exact_mut(4).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
