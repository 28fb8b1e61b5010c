//! What the host tells the runner while the guest runs: other plans, and where functions are that
//! the plan names.
//!
//! The dispatcher looks into the mailbox before it enters translated code; the host makes sure by
//! a signal that it comes by soon.

use super::engine::Engine;
use super::events::{self, Ring};
use super::report;
use crate::layout;
use crate::report::{Message, ModuleMap};
use crate::ring::{self, Order};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// How often an answer of the host is waited for, 20 ms each time.
const MOST_WAITS: usize = 3000;

/// Takes the text out of the mailbox.
fn take(ring: &Ring) -> Option<Order> {
    let mailbox = ring.mailbox();
    if !mailbox.has_mail() {
        return None;
    }
    let length = mailbox.length.load(Ordering::Relaxed).min(ring::MAIL_BYTES as u32);
    let text = layout::EVENT_BUFFERS.start + ring::MAIL_OFFSET;
    // SAFETY: the text area behind the first page, mapped by `Ring::new`, which the host does not
    // touch until the text has been taken.
    let text = unsafe { std::slice::from_raw_parts(text as *const u8, length as usize) };
    let order = serde_json::from_slice(text).ok();
    ring::set(&mailbox.taken, mailbox.sent.load(Ordering::Relaxed));
    order
}

impl Engine {
    /// Does what the host asks for. Whether translations may have gone.
    pub fn take_orders(&mut self) -> bool {
        match self.observed.ring.as_ref().and_then(take) {
            None => false,
            Some(order) => {
                self.obey(order);
                true
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Plan(plan) => self.set_plan(*plan),
            Order::Functions(functions) => {
                for (function, name) in functions {
                    self.add_to_screens(function, &name);
                    self.observed.stops.add_function(function, name, &self.config.plan);
                    self.code.cache.drop_covering(function);
                }
            }
        }
    }

    /// Asks the host for functions in the code that has been mapped there, if the plan names any.
    pub fn announce(&mut self, mapped: Range<u64>) {
        if !self.config.plan.has_names() || self.observed.ring.is_none() {
            return;
        }
        for (range, mapping) in self.process.memory.inside(mapped) {
            let Some(file) = mapping.file.filter(|_| mapping.protection & libc::PROT_EXEC != 0)
            else {
                continue;
            };
            let map = ModuleMap {
                start: range.start,
                end: range.end,
                offset: mapping.offset,
                path: file.to_string(),
            };
            report::send(&Message::Module { process: self.process.numbers.host, map });
            self.wait_for_functions();
        }
    }

    /// A host that has ended does not answer.
    fn wait_for_functions(&mut self) {
        for _ in 0..MOST_WAITS {
            let Some(ring) = &self.observed.ring else { return };
            let mailbox = ring.mailbox();
            events::wait_for_host(&mailbox.sent, mailbox.taken.load(Ordering::Relaxed));
            if !ring.is_read() {
                return;
            }
            if let Some(order) = take(ring) {
                let answered = matches!(order, Order::Functions(_));
                self.obey(order);
                if answered {
                    return;
                }
            }
        }
    }
}
