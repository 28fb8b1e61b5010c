//! The table of what system calls write, in the form that the oracle asks for.

use nix::errno::Errno;
use syscalls::{Before, Entry, Known, Peek};
use testkit::syscallwrites::{Call, Memory, Table, Tally};

/// The table of `syscalls`.
pub struct Effects;

struct Seen<'a, 'b>(&'a Memory<'b>);

impl Peek for Seen<'_, '_> {
    fn read(&self, address: u64, out: &mut [u8]) -> bool {
        self.0.read(address, out)
    }
}

impl Table for Effects {
    type Before = Before;

    fn before(&self, call: &Call, memory: &Memory) -> Before {
        syscalls::before(call.number, call.arguments, &Seen(memory))
    }

    fn written(
        &self,
        call: &Call,
        answer: i64,
        before: &Before,
        memory: &Memory,
    ) -> Option<Vec<(u64, u64)>> {
        let mut out = Vec::new();
        let memory = Seen(memory);
        let known =
            syscalls::written(call.number, call.arguments, answer, before, &memory, &mut out);
        let ranges = out.iter().map(|range| (range.address, range.length)).collect();
        (known == Known::Yes).then_some(ranges)
    }

    fn row(&self, call: &Call) -> Option<String> {
        syscalls::entry(call.number, call.arguments).map(name)
    }
}

/// A row's name: the call's, with the request where there is one.
pub fn name(entry: Entry) -> String {
    let call = syscalls::name(entry.number).unwrap_or("?");
    match entry.choice {
        Some(choice) => format!("{call} {choice:#x}"),
        None => call.to_owned(),
    }
}

/// Which of the rows that write have been exercised.
#[derive(Default)]
pub struct Coverage {
    /// Seen to succeed, or to fail and write.
    pub exercised: Vec<String>,
    /// Seen to fail only, with these errors.
    pub refused: Vec<String>,
    /// Not seen.
    pub unseen: Vec<String>,
}

impl Coverage {
    /// Of what a tally has seen.
    pub fn of(tally: &Tally) -> Self {
        let mut coverage = Self::default();
        for entry in syscalls::entries().into_iter().filter(|entry| entry.writes) {
            let name = name(entry);
            match tally.rows.get(&name) {
                Some(row) if row.succeeded > 0 || row.changed > 0 => coverage.exercised.push(name),
                Some(row) => {
                    let errors: Vec<String> = row
                        .errors
                        .iter()
                        .map(|error| format!("{:?}", Errno::from_raw(*error)))
                        .collect();
                    coverage.refused.push(format!("{name} ({})", errors.join(" ")));
                }
                None => coverage.unseen.push(name),
            }
        }
        coverage
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.exercised.len() + self.refused.len() + self.unseen.len()
    }
}
