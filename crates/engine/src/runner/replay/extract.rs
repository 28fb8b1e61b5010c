//! Cuts a region out of a recording: the process as it is goes to a new log, and after it everything
//! that the replay takes from the old one, until it stands still again.

use super::contexts;
use crate::report::LogOrigin;
use crate::runner::context::Context;
use crate::runner::record::image;
use crate::runner::record::log::Log;
use crate::runner::{record, report};
use crate::sys;
use recording::log::{Entry, write_head};

/// From here on what happens goes to a new log.
pub fn begin(context: &mut Context) {
    let mut log = Log::open(sys::getpid(), LogOrigin::Start).unwrap_or_else(|error| {
        report::refuse(&format!("no buffers for the log: error {error}"), 0)
    });
    let threads = contexts::data(context);
    let running = context.replayer().contexts.number();
    let (image, ranges) = image::of(context.engine(), threads, running);
    put(&mut log, &Entry::Image(Box::new(image)), &[]);
    for (range, contents) in ranges {
        image::pages(range, contents, &mut |start, bytes| {
            put(&mut log, &Entry::Pages { start }, bytes)
        });
    }
    context.replayer().source.copy_to(Some(log));
}

/// The process stands still: the new log ends here.
pub fn end(context: &mut Context, ended: bool) {
    if ended {
        context.replayer().source.copy_next();
    }
    let Some(mut log) = context.replayer().source.copy_to(None) else { return };
    if !ended {
        let at = record::position(context.engine());
        put(&mut log, &Entry::Stop(at), &[]);
    }
    log.finish();
}

fn put(log: &mut Log, entry: &Entry, payload: &[u8]) {
    let mut head = Vec::new();
    write_head(entry, payload.len() as u32, &mut head);
    log.append(&head);
    log.append(payload);
}
