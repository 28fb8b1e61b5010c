//! The stack of calls of a thread, followed forwards, to notice what plain calls and returns do
//! not tell: frames that are left by `longjmp`, an exception or an exit from a coroutine, and
//! signal handlers. A frame is known by the address of its return address.

/// The active calls of one thread.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    address: u64,
    handler: bool,
}

impl Calls {
    /// A call that stored its return address here. Frames that this overwrites were left without
    /// returning: their addresses, innermost first.
    pub fn call(&mut self, address: u64) -> Vec<u64> {
        let left = self.drop_while(|slot| slot.address <= address);
        self.slots.push(Slot { address, handler: false });
        left
    }

    /// A return through this address. Frames further in were left without returning.
    pub fn returns(&mut self, address: u64) -> Vec<u64> {
        let left = self.drop_while(|slot| slot.address < address && !slot.handler);
        if self.slots.last().is_some_and(|slot| slot.address == address && !slot.handler) {
            self.slots.pop();
        }
        left
    }

    /// A signal handler is entered.
    pub fn handler(&mut self) {
        let address = self.slots.last().map_or(u64::MAX, |slot| slot.address - 1);
        self.slots.push(Slot { address, handler: true });
    }

    /// Whether a handler is among the active calls.
    #[must_use]
    pub fn in_handler(&self) -> bool {
        self.slots.iter().any(|slot| slot.handler)
    }

    /// The innermost handler returns to what it interrupted.
    pub fn handler_returns(&mut self) {
        if let Some(at) = self.slots.iter().rposition(|slot| slot.handler) {
            self.slots.truncate(at);
        }
    }

    fn drop_while(&mut self, gone: impl Fn(&Slot) -> bool) -> Vec<u64> {
        let mut left = Vec::new();
        while let Some(slot) = self.slots.last().copied().filter(&gone) {
            self.slots.pop();
            if !slot.handler {
                left.push(slot.address);
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_left_without_returning_are_noticed_at_the_next_call_or_return() {
        let mut calls = Calls::default();
        for slot in [0x1000, 0xf00, 0xe00] {
            assert_eq!(calls.call(slot), []);
        }
        // longjmp to the outermost of the three, which calls again
        assert_eq!(calls.call(0xf80), [0xe00, 0xf00]);
        assert_eq!(calls.returns(0xf80), []);
        assert_eq!(calls.returns(0x1000), []);
        // a return out of a frame that began before the window
        assert_eq!(calls.returns(0x2000), []);
    }

    #[test]
    fn a_handler_returns_to_what_it_interrupted() {
        let mut calls = Calls::default();
        calls.call(0x1000);
        calls.handler();
        assert!(calls.in_handler());
        assert_eq!(calls.call(0x500), []);
        assert_eq!(calls.returns(0x500), []);
        assert_eq!(calls.returns(0x700), [], "the handler's own return address is the kernel's");
        calls.handler_returns();
        assert!(!calls.in_handler());
        assert_eq!(calls.returns(0x1000), []);
    }
}
