//! Locks that are nothing but an atomic word, as those of Rust's standard library are: which instructions take and
//! give them is known from debug information ([`LockWord`]); who has one is followed here, as whether an exchange
//! has worked is not in the stream.

use super::calls::Taken;
use super::facts::LockWord;
use super::{Deed, Feed};

impl Feed {
    /// The running thread has executed a locked instruction of a function that takes or gives such a lock.
    pub(super) fn changes_lock_word(&mut self, deed: LockWord, lock: u64, pc: u64) {
        // Whatever is not understood here is ordered by the word itself.
        self.atomic_access(lock, true, true);
        let (now, site) = (self.now, self.site(pc, Deed::Lock));
        let held = self.thread().locks;
        match (deed, self.order.holder(lock)) {
            (LockWord::Unlock, Some(holder)) if holder == now => self.unlock(lock),
            (LockWord::Unlock, _) => {}
            (LockWord::Lock, None) => {
                self.order.wants(now, lock, site, held);
                self.lock(lock, true, Taken::Waiting);
                self.thread().waits_for_word = false;
            }
            (LockWord::Lock, Some(_)) => {
                self.order.wants(now, lock, site, held);
                self.thread().waits_for_word = true;
            }
            (LockWord::Try, None) => self.lock(lock, true, Taken::Trying(site)),
            (LockWord::Try, Some(_)) => {}
        }
    }

    /// The running thread does something else: if it seemed to wait for such a lock, it has gone on.
    pub(super) fn goes_on(&mut self) {
        if std::mem::take(&mut self.thread().waits_for_word) {
            let now = self.now;
            self.order.got(now, &self.sets, false, false);
        }
    }
}
