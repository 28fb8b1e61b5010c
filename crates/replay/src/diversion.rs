//! **Diversions**: a process leaves the recording where it stands, and goes on by itself with something
//! altered. What it does is bounded and stays inside (`engine::control::Command::Divert`).

use crate::outputs::Outputs;
use crate::timeline::StoppedProcess;
pub use engine::control::{Budget, DiversionEnd, Diverted, Goal};
use events::Plan;
use events::patch::Patch;
use recording::log::ThreadData;
use std::fs::File;
use std::io;

/// A diversion that is over. Its memory can be read as long as this lives.
pub struct Diversion {
    /// Where and how it ended.
    pub diverted: Diverted,
    /// What it wrote to standard output and error: stream and bytes of each piece.
    pub output: Vec<(u8, Vec<u8>)>,
    process: StoppedProcess,
}

impl Diversion {
    /// Reads guest memory as it was at the end; how many bytes there are.
    pub fn read(&self, address: u64, into: &mut [u8]) -> usize {
        self.process.read(address, into)
    }

    /// All threads that live.
    pub fn threads(&self) -> io::Result<Vec<ThreadData>> {
        self.process.runner.threads()
    }

    /// Goes on to another goal, if it has come to one. Only patches for all executions still count.
    pub fn go_on(&mut self, patches: Vec<Patch>, to: Goal, budget: Budget) -> io::Result<()> {
        let plan = Plan { patches, ..Plan::default() };
        let (diverted, file) = self.process.runner.divert(plan, to, budget)?;
        self.diverted = diverted;
        self.output.extend(pieces(file)?);
        Ok(())
    }
}

fn pieces(mut file: File) -> io::Result<Vec<(u8, Vec<u8>)>> {
    let mut outputs = Outputs::default();
    outputs.take(&mut file)?;
    Ok(outputs.into_pieces())
}

impl StoppedProcess {
    /// Leaves the recording here, and goes on to the end. An error says that the runner has ended before it could
    /// answer.
    pub fn divert(self, patches: Vec<Patch>, budget: Budget) -> io::Result<Diversion> {
        self.divert_to(patches, Goal::End, budget)
    }

    /// The same, and goes on to a goal.
    pub fn divert_to(self, patches: Vec<Patch>, to: Goal, budget: Budget) -> io::Result<Diversion> {
        let plan = Plan { patches, ..Plan::default() };
        let (diverted, file) = self.runner.divert(plan, to, budget)?;
        Ok(Diversion { diverted, output: pieces(file)?, process: self })
    }
}
