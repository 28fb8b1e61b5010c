//! Events as a stream would bring them.

use super::*;
use events::shape::KIND_PLAIN;

const CALL: u64 = 0x1000;
const BACK: u64 = CALL + 5;
const SLOT: u64 = 0x7ff8;
const STORE: u64 = 0x2000;
const RETURN: u64 = 0x2fff;

struct Run(Transfers);

impl Run {
    /// A function is called.
    fn called() -> Self {
        let mut run = Self(Transfers::default());
        run.0.lengths.insert(CALL, 5);
        run.step(CALL, KIND_CALL);
        run.access(SLOT, true, None);
        run.rest(8);
        run
    }

    fn step(&mut self, pc: u64, kind: u8) {
        self.0.event(&Event::Instruction { pc, kind, taken: false });
    }

    /// Some instructions that touch nothing.
    fn rest(&mut self, count: u64) {
        (0..count).for_each(|at| self.step(0x2800 + at, KIND_PLAIN));
    }

    fn access(&mut self, address: u64, write: bool, value: Option<u64>) {
        self.0.event(&Event::Access { address, size: 8, write });
        value.iter().for_each(|value| self.0.event(&Event::Value([*value, 0, 0, 0])));
    }

    fn store(&mut self, address: u64, value: u64) {
        self.step(STORE, KIND_PLAIN);
        self.access(address, true, Some(value));
    }

    fn load(&mut self, address: u64, value: u64) {
        self.step(STORE + 8, KIND_PLAIN);
        self.access(address, false, Some(value));
    }

    fn returns(mut self, slot: u64, target: u64) -> Vec<Hijack> {
        self.step(RETURN, KIND_RETURN);
        self.access(slot, false, Some(target));
        self.0.found
    }
}

#[test]
fn a_store_over_the_return_address_is_told_when_the_return_goes_elsewhere() {
    let mut run = Run::called();
    run.store(SLOT, 0x5555);
    let found = run.returns(SLOT, 0x5555);
    let [one] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(one.what, Overwritten::Return { expected: BACK, target: 0x5555 });
    assert_eq!((one.pc, one.write.pc, one.write.value), (RETURN, STORE, Some(0x5555)));
    assert_eq!((one.place, one.write.callers.as_slice()), (SLOT, &[CALL][..]));
}

#[test]
fn what_the_kernel_wrote_is_told_as_such() {
    let mut run = Run::called();
    run.0.event(&Event::Kernel { address: SLOT - 24, length: 40, write: true });
    let found = run.returns(SLOT, 0x5555);
    assert!(found.len() == 1 && found[0].write.by_kernel, "{found:?}");
}

#[test]
fn ordinary_and_deliberate_returns_are_not_told() {
    assert!(Run::called().returns(SLOT, BACK).is_empty(), "to its call");
    assert!(Run::called().returns(SLOT, 0x5555).is_empty(), "no store was seen");
    assert!(Run::called().returns(SLOT - 0x100, 0x5555).is_empty(), "of no call");
    let mut same = Run::called();
    same.store(SLOT, BACK);
    assert!(same.returns(SLOT, BACK).is_empty(), "the same was stored");
    let mut meant = Run::called();
    meant.0.deliberate.insert(STORE);
    meant.store(SLOT, 0x5555);
    assert!(meant.returns(SLOT, 0x5555).is_empty(), "by the stack pointer");
    let mut redirected = Run(Transfers::default());
    redirected.0.lengths.insert(CALL, 5);
    redirected.step(CALL, KIND_CALL);
    redirected.access(SLOT, true, None);
    redirected.store(SLOT, 0x5555);
    assert!(redirected.returns(SLOT, 0x5555).is_empty(), "a retpoline");
}

#[test]
fn a_saved_frame_pointer_that_changes_is_told_when_its_caller_returns_from_elsewhere() {
    let mut run = Run(Transfers::default());
    run.0.lengths.insert(CALL, 5);
    run.step(CALL, KIND_CALL);
    run.access(SLOT, true, None);
    run.store(SLOT - 8, 0x7000);
    run.rest(8);
    run.store(SLOT - 8, 0x4343);
    run.load(SLOT - 8, 0x4343);
    let mut after = run;
    after.step(RETURN, KIND_RETURN);
    after.access(SLOT, false, Some(BACK));
    assert!(after.0.found.is_empty());
    assert_eq!(after.0.frame_pointer().map(|one| one.place), Some(SLOT - 8));
    let found = after.returns(0x4343, 0x5555);
    assert!(found.len() == 1 && found[0].what == Overwritten::FramePointer, "{found:?}");
}

#[test]
fn a_buffer_that_changes_between_setjmp_and_longjmp_is_told() {
    const SET: u64 = 0x3000;
    const JUMP: u64 = 0x3100;
    let jumps = Jumps { set: vec![SET], jump: vec![JUMP] };
    // On the stack, and where static variables are.
    for (buffer, changed) in [(0x9000, false), (0x9000, true), (0x500, false), (0x500, true)] {
        let mut run = Run(Transfers::new(jumps.clone()));
        run.0.lengths.insert(CALL, 5);
        run.step(CALL, KIND_CALL);
        run.access(SLOT, true, None);
        run.step(SET, KIND_PLAIN);
        run.store(buffer, 0x77);
        run.step(RETURN, KIND_RETURN);
        run.access(SLOT, false, Some(BACK));
        if changed {
            run.store(buffer, 0x88);
        }
        run.step(JUMP, KIND_PLAIN);
        run.load(buffer, if changed { 0x88 } else { 0x77 });
        let kinds: Vec<_> = run.0.found.iter().map(|one| one.what).collect();
        assert_eq!(kinds, if changed { vec![Overwritten::JumpBuffer] } else { Vec::new() });
    }
}
