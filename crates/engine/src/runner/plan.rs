//! The plan in force: what each part of the engine has to know of it.

use super::engine::Engine;
use super::translate::instrument::Instrumentation;
use super::translate::lower::common_spills;
use crate::sys;
use ::events::Plan;
use ::events::record::Entry;

impl Engine {
    /// From now on this plan is in force. The caller has the dispatcher: no superblock is under
    /// way.
    pub fn set_plan(&mut self, plan: Plan) {
        self.arrange(plan);
        self.code.cache.flush();
        self.observed.plan_number += 1;
        self.define(&Entry::Flush.bytes());
        self.define(&Entry::Plan(self.observed.plan_number).bytes());
        self.mute_unless_observed(sys::gettid());
    }

    /// Makes ready for a plan.
    pub fn arrange(&mut self, plan: Plan) {
        self.arrange_screens(&plan);
        self.code.inside = Instrumentation::inside(&plan);
        self.code.outside = Instrumentation::outside(&plan);
        self.code.cache.arrange(common_spills(self.code.inside));
        self.observed.stops.arrange(&plan);
        self.config.plan = plan;
    }
}
