//! The close look at an address whose tag is not that of its pointer: whether they are in two blocks.

use super::arrange;
use crate::runner::engine::Engine;
use crate::runner::screens::heap::Heap;
use crate::runner::translate::accesses::Form;
use events::suspicion::Suspicion;

/// How far compilers let a pointer count from before an array.
const NEAR: u64 = 128;

/// Whether an address that was made from a pointer lies in another block than that points to. A pointer
/// next to the other block must be the beginning of its own: compilers count from before an array,
/// where another one may be.
fn leaves_block(heap: &Heap, pointer: u64, address: u64) -> bool {
    let (Some(from), Some(to)) = (heap.block_of(pointer), heap.block_of(address)) else {
        return false;
    };
    let near = to.start.saturating_sub(NEAR)..to.end.saturating_add(NEAR);
    from != to && (!near.contains(&pointer) || pointer == from.start)
}

/// Whether two addresses lie in one block.
fn share_a_block(heap: &Heap, one: u64, other: u64) -> bool {
    let block = heap.block_of(one);
    block.is_some() && block == heap.block_of(other)
}

impl Engine {
    /// Compares addresses that the next instruction makes with the pointers that it makes them from.
    pub fn look_at_addresses(&mut self, forms: &[Form]) {
        let provenance = self.config.plan.heap().is_some_and(|heap| heap.provenance);
        let (registers, Some(heap)) = (self.cpu.registers, &self.observed.screens.heap) else {
            return;
        };
        if !provenance || self.cpu.tag_mask == 0 {
            return;
        }
        let value = |register: u8| registers.general[register as usize];
        let outside = |form: &Form| {
            let (pointer, other, by) = match *form {
                Form::Base(base, by) => (value(base), None, by as u64),
                Form::Sum(Some(base), index, scale, by) => {
                    let scaled = value(index).wrapping_mul(u64::from(scale));
                    let other = (scale == 1).then(|| value(index));
                    (value(base), other, scaled.wrapping_add_signed(i64::from(by)))
                }
                _ => return None,
            };
            let address = pointer.wrapping_add(by);
            // Of two pointers, one may be the distance of another block from the other.
            let leaves = leaves_block(heap, pointer, address)
                && !other.is_some_and(|other| share_a_block(heap, other, address));
            leaves.then_some((pointer, address))
        };
        // String functions of the C library go on past ends.
        let library = || self.library(registers.pc).is_some();
        if let Some((pointer, address)) = forms.iter().find_map(outside).filter(|_| !library()) {
            self.suspect(registers.pc, Suspicion::OutOfObject { pointer, address });
            arrange::settle(true);
            self.cpu.tag_mask = arrange::mask(false);
        }
    }
}
