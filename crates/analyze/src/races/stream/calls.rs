//! Calls of functions of thread libraries and allocators: what they mean as a whole.

use super::{Deed, Feed};
use crate::races::detector::Object;
use crate::races::stream::sites::Allocation;
use crate::races::sync::Role;
use base::allocator::{Allocator, Role as Allocating};

/// A call of a known function under way.
#[derive(Clone, Copy)]
pub(super) struct Under {
    stack: u64,
    call: Call,
    arguments: [u64; 6],
    site: u32,
    generation: u32,
}

#[derive(Clone, Copy)]
enum Call {
    Sync(Role),
    Allocator(Allocator),
}

impl Under {
    /// Whether what the program does inside of it does not count. What is done once is the program's own code,
    /// which `std::async` calls that way too.
    pub(super) fn hides(&self) -> bool {
        !matches!(self.call, Call::Sync(Role::Once))
    }
}

/// How a lock was taken.
#[derive(Clone, Copy)]
pub(super) enum Taken {
    /// By waiting for it.
    Waiting,
    /// By trying once, at a site.
    Trying(u32),
    /// After a wait for a condition.
    Again,
}

impl Feed {
    pub(super) fn enter(&mut self, function: u64, stack: u64, arguments: [u64; 6]) {
        let call = match (self.facts.functions.get(&function), self.facts.allocators.get(&function))
        {
            (Some(role), _) => Call::Sync(*role),
            (None, Some(allocator)) => Call::Allocator(*allocator),
            (None, None) => return,
        };
        let deed = if matches!(call, Call::Sync(_)) { Deed::Lock } else { Deed::Free };
        let site = self.caller_site(deed);
        let mut under = Under { stack, call, arguments, site, generation: 0 };
        // A function of the library that another one calls is part of that.
        if !self.thread().is_hidden {
            match call {
                Call::Sync(role) => {
                    under.generation = self.enters_sync(role, stack, arguments, site)
                }
                Call::Allocator(allocator) => self.enters_allocator(allocator, arguments, site),
            }
        }
        let thread = self.thread();
        thread.is_hidden |= under.hides();
        thread.under.push(under);
    }

    fn enters_sync(&mut self, role: Role, stack: u64, arguments: [u64; 6], site: u32) -> u32 {
        let (now, object) = (self.now, arguments[0]);
        match role {
            Role::Lock | Role::LockShared => {
                let held = self.thread().locks;
                self.order.wants(now, object, site, held);
            }
            Role::Unlock => self.unlock(object),
            Role::Wait => {
                self.thread().waits.waits(stack);
                self.pairs.ends(now, true, &self.sets);
                self.unlock(arguments[1]);
            }
            Role::Signal => self.release(Object::Signal(object, 0)),
            Role::Barrier => {
                let (round, left) = self.barriers.entry(object).or_insert((0, false));
                if std::mem::take(left) {
                    *round += 1;
                }
                let round = *round;
                self.release(Object::Signal(object, round));
                return round;
            }
            Role::TryLock
            | Role::TryLockShared
            | Role::Await
            | Role::Once
            | Role::Create
            | Role::Join
            | Role::Other => {}
        }
        0
    }

    pub(super) fn unlock(&mut self, lock: u64) {
        let now = self.now;
        if let Some(unchecked) = self.thread().waits.gives(now, lock)
            && !self.unchecked.iter().any(|known| known.site == unchecked.site)
        {
            self.unchecked.push(unchecked);
        }
        let shared = &mut self.thread().shared;
        let reads = shared.iter().position(|held| *held == lock).map(|at| shared.swap_remove(at));
        self.release(reads.map_or(Object::Lock(lock), Object::Readers));
        self.order.gave(lock);
        let locks = self.thread().locks;
        let locks = self.sets.without(locks, lock);
        self.thread().locks = locks;
        if locks == 0 {
            self.pairs.ends(now, false, &self.sets);
        }
    }

    /// The running thread has a lock.
    pub(super) fn lock(&mut self, lock: u64, alone: bool, how: Taken) {
        self.acquire(Object::Lock(lock));
        if alone {
            self.acquire(Object::Readers(lock));
        } else {
            self.thread().shared.push(lock);
        }
        let now = self.now;
        match how {
            Taken::Waiting => self.order.got(now, &self.sets, true, alone),
            Taken::Trying(site) if alone => self.order.has(now, lock, site),
            Taken::Trying(_) | Taken::Again => {}
        }
        let locks = self.thread().locks;
        let with = self.sets.with(locks, lock);
        let thread = self.thread();
        if locks == 0 {
            thread.section += 1;
            if !matches!(how, Taken::Again) {
                thread.waits.begins();
            }
        }
        thread.locks = with;
    }

    pub(super) fn leave(&mut self, function: u64, stack: u64, value: u64) {
        let known = self.facts.functions.contains_key(&function)
            || self.facts.allocators.contains_key(&function);
        if !known {
            return;
        }
        let thread = self.thread();
        let is_it = |under: &Under| under.stack == stack;
        let Some(index) = thread.under.iter().rposition(is_it) else { return };
        let call = thread.under[index];
        thread.under.truncate(index);
        thread.is_hidden = thread.under.iter().any(Under::hides);
        if thread.is_hidden {
            return;
        }
        match call.call {
            Call::Sync(role) => {
                let success = self.facts.successes.get(&function).copied().unwrap_or_default();
                self.leaves_sync(role, call, success.is(value));
            }
            Call::Allocator(allocator) => self.leaves_allocator(allocator, call, value),
        }
    }

    fn leaves_sync(&mut self, role: Role, call: Under, worked: bool) {
        let object = call.arguments[0];
        match role {
            Role::Lock | Role::LockShared if worked => {
                self.lock(object, role == Role::Lock, Taken::Waiting);
            }
            Role::TryLock | Role::TryLockShared if worked => {
                self.lock(object, role == Role::TryLock, Taken::Trying(call.site));
            }
            Role::Lock | Role::LockShared => {
                let now = self.now;
                self.order.got(now, &self.sets, false, false);
            }
            Role::Wait => {
                if worked {
                    self.acquire(Object::Signal(object, 0));
                }
                let lock = call.arguments[1];
                self.lock(lock, true, Taken::Again);
                self.thread().waits.woken(call.site, (object, lock), worked);
            }
            Role::Await if worked => self.acquire(Object::Signal(object, 0)),
            Role::Barrier => {
                self.acquire(Object::Signal(object, call.generation));
                if let Some((round, left)) = self.barriers.get_mut(&object)
                    && *round == call.generation
                {
                    *left = true;
                }
            }
            Role::Once => {
                if self.done_once.insert(object) {
                    self.release(Object::Signal(object, 0));
                } else {
                    self.acquire(Object::Signal(object, 0));
                }
            }
            Role::Join if worked => {
                if let Some(ended) = self.by_base.get(&object).copied() {
                    self.acquire(Object::End(ended));
                    self.order.joins(self.now, ended);
                }
            }
            _ => {}
        }
    }

    fn enters_allocator(&mut self, allocator: Allocator, arguments: [u64; 6], site: u32) {
        if matches!(allocator.role, Allocating::Free | Allocating::Resize(..))
            && let Some((size, _)) = self.blocks.remove(&arguments[0])
        {
            self.access(arguments[0], size, true, site);
        }
    }

    fn leaves_allocator(&mut self, allocator: Allocator, call: Under, value: u64) {
        let argument = |number: u8| call.arguments.get(usize::from(number)).copied().unwrap_or(0);
        let size = match allocator.role {
            Allocating::Allocate(size, count) | Allocating::Resize(size, count) => {
                argument(size).saturating_mul(count.map_or(1, argument))
            }
            Allocating::AllocateFixed(size) => size,
            // Where it is, only memory tells.
            Allocating::AllocateTo(_)
            | Allocating::Free
            | Allocating::Measure
            | Allocating::Tend => return,
        };
        if value == 0 {
            return;
        }
        self.allocations.push(Allocation {
            address: value,
            size,
            site: call.site,
            time: self.tick,
        });
        self.forget(value, size);
        let number = self.allocations.len() as u32;
        self.blocks.insert(value, (size, number));
    }
}
