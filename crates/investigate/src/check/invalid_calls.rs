//! Rules that only unusual calls of allocators can break (a block that is not live is freed, or by another
//! family, or a size is beyond all memory): then the runner keeps the history of blocks, and
//! tells of nothing else. What is found is the same; ordinary calls cost next to nothing.

use super::choose::Chosen;
use super::recorded::heap_functions;
use super::screened::is_light;
use analyze::rules::model::Rule;
use analyze::rules::needs::Needs;
use analyze::rules::ordinary;
use events::Plan;
use events::plan::{Allocations, HeapFunction, Screen};

/// The plan of a run, without ordinary calls if no rule needs them.
pub fn only_invalid_calls(plan: Plan, chosen: &Chosen) -> Plan {
    let allocates = |rule: &Rule| Needs::of(rule).allocations;
    // Whoever wants to end the program is told at once.
    if chosen.first_only
        || !chosen.rules.iter().all(is_content)
        || !chosen.rules.iter().any(allocates)
    {
        return plan;
    }
    let functions = heap_functions(&chosen.allocators);
    let called =
        |name: &String| chosen.rules.iter().any(|rule| Needs::of(rule).functions.contains(name));
    let mut plan = without_calls(plan, &functions);
    plan.stops.names.retain(called);
    plan.screens.push(Screen::Allocations(Allocations { functions }));
    plan
}

/// The same without calls of functions that a screen follows anyway.
pub fn without_calls(mut plan: Plan, followed: &[HeapFunction]) -> Plan {
    plan.stops.names.retain(|name| !followed.iter().any(|function| function.name == *name));
    plan
}

/// Whether a rule misses nothing if it does not hear of ordinary calls.
fn is_content(rule: &Rule) -> bool {
    let ignores = !Needs::of(rule).allocations && ordinary::looks_at_now(&rule.condition);
    is_light(rule) && (ignores || ordinary::fails(rule))
}
