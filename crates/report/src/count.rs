//! What a program executed, as a table.

use investigate::count::Report;
use std::collections::BTreeMap;

/// Counts as text.
pub fn table(report: &Report) -> String {
    let mut text = String::new();
    let total = &report.total;
    let rows = [
        ("instructions", total.instructions),
        ("blocks", total.blocks),
        ("conditional branches", total.branches),
        ("  taken", total.taken),
        ("calls", total.calls),
        ("returns", total.returns),
        ("loads", total.loads),
        ("stores", total.stores),
        ("system calls", total.syscalls),
    ];
    for (name, value) in rows {
        text += &format!("{value:>16}  {name}\n");
    }
    let threads: usize = report.processes.values().map(BTreeMap::len).sum();
    if threads > 1 {
        for (process, threads) in &report.processes {
            for (thread, counts) in threads {
                let count = counts.instructions;
                text +=
                    &format!("{count:>16}  instructions of process {process}, thread {thread}\n");
            }
        }
    }
    text
}
