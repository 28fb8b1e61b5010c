//! Stands in for what a log leaves out: an **execution slice** holds only some stretches of a run.
//! When one has been executed, the state is made what it was when the next one began.
//!
//! That the stretch was executed as it was then is compared before, as at every entry.

use super::{contexts, diverge, memory};
use crate::layout;
use crate::runner::clock;
use crate::runner::context::Context;
use crate::runner::memory::Mapping;
use recording::log::Skip;

/// Makes up for what is left out.
pub fn make_up(context: &mut Context, skip: &Skip) {
    for data in &skip.mapped {
        if data.start >= data.end || layout::belongs_to_engine(&(data.start..data.end)) {
            diverge(context, "memory was mapped where there can be none");
        }
        let mapping = Mapping {
            protection: data.protection,
            shared: false,
            file: data.path.as_deref().map(Into::into),
            offset: data.offset,
            identity: None,
            view: None,
        };
        memory::map(context, data.start..data.end, mapping, None);
    }
    for (address, length) in &skip.writes {
        let end = address.saturating_add(*length);
        if !context.engine().process.memory.is_writable(*address, *length) {
            diverge(context, "memory that changed meanwhile is not there");
        }
        context.engine().unguard(*address, end);
        // SAFETY: mapped and writable, as just seen, and what was translated from it is forgotten.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(*address as *mut u8, *length as usize) };
        context.replayer().source.payload(bytes);
    }
    clock::set(context.cpu(), skip.time);
    let block = context.thread().block;
    contexts::resume(context, &skip.thread, block);
}
