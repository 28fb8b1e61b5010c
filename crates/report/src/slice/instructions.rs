//! A slice as a list of instructions.

use investigate::slicing::instructions::{Executed, Listed};
use std::fmt::Write;

/// The first lines of a list, for a program that has no source to be shown, and what shows all.
pub fn nearest(listed: &str, shown: usize, all: &str) -> String {
    let mut out = String::from("  (no source; position, thread, execution, instruction)\n");
    out.extend(listed.lines().take(shown).map(|line| format!("  {line}\n")));
    if let more @ 1.. = listed.lines().count().saturating_sub(shown) {
        out += &format!("  {more} more instructions; {all}\n");
    }
    out
}

/// One execution a line.
pub fn text(listed: &Listed) -> String {
    let mut out = String::new();
    for executed in listed.executions.iter().flatten() {
        let Executed { tick, thread, pc, instance, .. } = executed;
        let instruction = executed.instruction.as_deref().unwrap_or("?");
        let at = tick.map_or_else(String::new, |tick| format!("{tick}:{pc}"));
        let _ = write!(out, "{at}/{thread} #{instance}  {instruction}");
        let call = executed.system_call.iter().map(|call| format!("; {call}"));
        out.extend(call.chain([format!("   {}\n", executed.location())]));
    }
    out
}
