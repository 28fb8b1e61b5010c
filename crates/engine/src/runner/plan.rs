//! The plan in force: what each part of the engine has to know of it.

use super::engine::Engine;
use super::screen::Shadow;
use super::translate::lower::standing;
use super::{report, sys};
use ::events::plan::Filter;
use ::events::{Plan, record as event};

impl Engine {
    /// From now on this plan is in force. The caller has the dispatcher: no superblock is under
    /// way.
    pub fn set_plan(&mut self, plan: Plan) {
        self.arrange(plan);
        self.cache.flush();
        self.plan_number += 1;
        self.define(&event::FLUSH.to_le_bytes());
        let number = self.plan_number.to_le_bytes();
        self.define(&[event::PLAN.to_le_bytes(), number].concat());
        self.mute_unless_observed(sys::gettid());
    }

    /// Makes ready for a plan.
    pub fn arrange(&mut self, plan: Plan) {
        if let Some(Filter::Shadow { paint, .. }) = &plan.filter {
            let shadow = self.shadow.get_or_insert_with(new_shadow);
            paint.iter().for_each(|paint| shadow.paint(paint));
            if !plan.heap.is_empty() {
                self.heap.get_or_insert_default().arrange(&plan.heap);
            }
        }
        if plan.scramble {
            self.heap.get_or_insert_default().arrange_unpainted(&plan.heap);
        }
        if plan.has_ledger() {
            self.ledger.get_or_insert_default().arrange(&plan.heap);
        }
        self.cache.arrange(standing(&plan));
        self.stops.arrange(&plan);
        self.outside = plan.outside();
        self.config.plan = plan;
    }
}

fn new_shadow() -> Shadow {
    Shadow::new().unwrap_or_else(|error| report::refuse(&format!("no shadow: error {error}"), 0))
}
