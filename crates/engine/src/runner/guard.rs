//! Code that may change: pages that code was translated from are write-protected until written to.

use super::engine::Engine;
use super::guest::Checked;
use super::signal::frame::GuestMemory;
use super::translate::superblock;
use crate::sys::syscall;
use syscalls::Peek;

impl Engine {
    /// Code on a writable page may change: the page is made read-only until it is written to.
    pub fn guard_code(&mut self, superblock: &superblock::Superblock) {
        for page in superblock.pages().map(|number| number * 4096) {
            let writable = self
                .process
                .memory
                .find(page)
                .is_some_and(|(_, mapping)| mapping.protection & libc::PROT_WRITE != 0);
            if writable {
                self.guard(page, page);
            }
            if !self.code.cache.has_page(page) {
                for alias in self.process.memory.writable_aliases(page) {
                    self.guard(alias, page);
                }
            }
        }
    }

    fn guard(&mut self, page: u64, code: u64) {
        if self.code.guarded.insert(page, code).is_none() {
            let protection = libc::PROT_READ | libc::PROT_EXEC;
            // SAFETY: a page of the guest's, made less accessible than it asked for.
            unsafe { syscall!(libc::SYS_mprotect, page, 4096, protection) };
        }
    }

    /// Undoes [`Self::guard_code`] for a range. Whether anything was guarded.
    pub fn unguard(&mut self, start: u64, end: u64) -> bool {
        let pages: Vec<(u64, u64)> = self
            .code
            .guarded
            .range(start & !0xfff..end)
            .map(|(page, code)| (*page, *code))
            .collect();
        for (page, code) in &pages {
            self.code.guarded.remove(page);
            self.code.cache.drop_range(*code, *code + 4096);
            if let Some((_, mapping)) = self.process.memory.find(*page) {
                let protection = mapping.protection;
                // SAFETY: restores what the guest asked for.
                unsafe { syscall!(libc::SYS_mprotect, *page, 4096, protection) };
            }
        }
        !pages.is_empty()
    }

    /// Undoes [`Self::guard_code`] everywhere.
    pub fn unguard_all(&mut self) -> bool {
        self.unguard(0, u64::MAX)
    }

    /// Undoes [`Self::guard_code`] where the kernel is about to write for the guest: it would not
    /// fault but stop there, and answer that there was less to be had.
    pub fn unguard_buffers(&mut self, number: u64, arguments: [u64; 6]) {
        if self.code.guarded.is_empty() {
            return;
        }
        let mut buffers = Vec::new();
        let before = syscalls::before(number, arguments, &*self);
        // What a call may have written before it failed is all that it may write.
        let failed = -i64::from(libc::EFAULT);
        syscalls::written(number, arguments, failed, &before, &*self, &mut buffers);
        for syscalls::Range { address, length } in buffers {
            self.unguard(address, address.saturating_add(length));
        }
    }

    /// Forgets translations of code that is about to change or go away.
    pub fn code_changes(&mut self, start: u64, end: u64) {
        let pages: Vec<u64> =
            self.code.guarded.range(start & !0xfff..end).map(|(page, _)| *page).collect();
        for page in pages {
            self.code.guarded.remove(&page);
        }
        self.code.cache.drop_range(start, end);
    }
}

impl Peek for Engine {
    /// A single byte is asked for only to see whether there is one; the map tells that faster than
    /// the kernel.
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        match out {
            [_] => self.process.memory.find(address).is_some(),
            _ => Checked.read(address, out),
        }
    }
}
