//! What a program executes, in numbers.

use events::count::{Counter, Counts};
use events::{Consumer, Plan};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The counts of a run.
#[derive(Default, Serialize)]
pub struct Report {
    /// All of it.
    pub total: Counts,
    /// By process and thread, as the kernel numbers them.
    pub processes: BTreeMap<i32, BTreeMap<u32, Counts>>,
    event_bytes: u64,
}

/// What one process executed.
pub struct Counted {
    /// The kernel's number of the process.
    pub process: i32,
    threads: BTreeMap<u32, Counts>,
    event_bytes: u64,
}

/// A counter that leaves its sums behind when the stream ends.
struct Reporting {
    process: i32,
    counter: Counter,
    all: Arc<Mutex<Vec<Counted>>>,
}

impl Consumer for Reporting {
    fn records(&mut self, bytes: &[u8]) {
        self.counter.records(bytes);
    }

    fn end(&mut self) {
        let mut threads = std::mem::take(&mut self.counter.threads);
        threads.retain(|_, counts| *counts != Counts::default());
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Counted { process: self.process, threads, event_bytes: self.counter.bytes });
    }
}

type Make<'a> = &'a mut (dyn FnMut(i32) -> Box<dyn Consumer> + Send);

/// Counts what each process of a run executes.
pub fn count<T>(
    run: impl FnOnce(Plan, Make<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<(Vec<Counted>, T)> {
    let all = Arc::new(Mutex::new(Vec::new()));
    let plan = Plan::everything();
    let outcome = run(plan, &mut |process| {
        Box::new(Reporting { process, counter: Counter::default(), all: all.clone() })
    })?;
    let counted = std::mem::take(&mut *all.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((counted, outcome))
}

impl Report {
    /// All of these together.
    pub fn of<'a>(all: impl IntoIterator<Item = &'a Counted>) -> Self {
        let mut report = Self::default();
        for counted in all {
            report.event_bytes += counted.event_bytes;
            let process = report.processes.entry(counted.process).or_default();
            for (thread, counts) in &counted.threads {
                report.total.add(counts);
                process.entry(*thread).or_default().add(counts);
            }
        }
        report
    }
}
