//! Calls of probed functions, paired with their returns.
//!
//! The runner writes down where probed functions are entered and where the guest comes by an address
//! that one may return to; it does not stop for either. Which call has returned is worked out here. A
//! call is known by where its return address stands on the stack: recursion gives calls different
//! places, and what `longjmp` has left behind is forgotten when its place is used again. A function
//! that jumps to another at its end leaves it the place, and returns when that one does.

use crate::decode::Event;
use rustc_hash::FxHashMap;

/// Calls under way, by where their return address stands.
#[derive(Clone, Default)]
pub struct Calls(FxHashMap<u64, Call>);

#[derive(Clone)]
struct Call {
    /// The function that was called, and those that have taken its place since by tail calls.
    functions: Functions,
    back: u64,
}

/// Nearly always there is one.
#[derive(Clone)]
enum Functions {
    One(u64),
    Some(Vec<u64>),
}

impl Functions {
    fn all(&self) -> &[u64] {
        match self {
            Self::One(function) => std::slice::from_ref(function),
            Self::Some(functions) => functions,
        }
    }
}

impl Calls {
    /// A function has been called.
    pub fn enter(&mut self, function: u64, back: u64, stack: u64) {
        let fresh = Call { functions: Functions::One(function), back };
        let Some(call) = self.0.get_mut(&stack) else {
            self.0.insert(stack, fresh);
            return;
        };
        if call.back == back && !call.functions.all().contains(&function) {
            let functions = [call.functions.all(), &[function]].concat();
            call.functions = Functions::Some(functions);
        } else {
            *call = fresh;
        }
    }

    /// The guest is at `pc`, with this stack pointer and rax: what has returned there, innermost
    /// first.
    pub fn back(&mut self, pc: u64, stack: u64, value: u64, mut each: impl FnMut(Event)) {
        let place = stack.wrapping_sub(8);
        if self.0.get(&place).is_none_or(|call| call.back != pc) {
            return;
        }
        if let Some(call) = self.0.remove(&place) {
            for function in call.functions.all().iter().rev() {
                each(Event::Return { function: *function, stack: place, value });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn returns(calls: &mut Calls, pc: u64, stack: u64) -> Vec<u64> {
        let mut functions = Vec::new();
        calls.back(pc, stack, 0, |event| match event {
            Event::Return { function, .. } => functions.push(function),
            other => panic!("{other:?}"),
        });
        functions
    }

    #[test]
    fn only_the_call_whose_return_address_stood_there_has_returned() {
        let mut calls = Calls::default();
        calls.enter(1, 100, 1000);
        calls.enter(1, 100, 900);
        assert!(returns(&mut calls, 100, 500).is_empty());
        assert!(returns(&mut calls, 200, 908).is_empty());
        assert_eq!(returns(&mut calls, 100, 908), [1]);
        assert!(returns(&mut calls, 100, 908).is_empty());
        assert_eq!(returns(&mut calls, 100, 1008), [1]);
    }

    #[test]
    fn tail_calls_return_together_and_what_a_jump_left_is_forgotten() {
        let mut calls = Calls::default();
        calls.enter(1, 100, 1000);
        calls.enter(2, 100, 1000);
        assert_eq!(returns(&mut calls, 100, 1008), [2, 1]);
        calls.enter(1, 100, 1000);
        calls.enter(1, 100, 1000);
        assert_eq!(returns(&mut calls, 100, 1008), [1]);
        calls.enter(1, 100, 1000);
        calls.enter(2, 300, 1000);
        assert!(returns(&mut calls, 100, 1008).is_empty());
        assert_eq!(returns(&mut calls, 300, 1008), [2]);
    }
}
