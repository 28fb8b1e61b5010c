//! What `whydunit run` observes and alters: from arguments to a plan.

use anyhow::Context;
use events::patch::{self, Patch};
use events::plan::{ALL_REGISTERS, Execution, Probe, Screen, Shadow};
use events::{Consumer, Plan, Process};
use std::path::PathBuf;
use std::time::Duration;

/// What to observe, and what to alter.
#[derive(clap::Args)]
pub struct Observe {
    /// What to observe; the events are counted and thrown away unless they are saved
    #[arg(long, value_enum, default_value = "nothing")]
    observe: What,
    /// Registers whenever the instruction at this address is about to execute
    #[arg(long, value_name = "ADDRESS", value_parser = patch::address, hide = true)]
    probe: Vec<u64>,
    /// Calls and returns of the function of this name, in whatever module it is
    #[arg(long, value_name = "NAME", hide = true)]
    function: Vec<String>,
    /// Make the program do something else at a place: `PLACE[#N]: flip|skip|jump ADDR|return|set $reg=V|set
    /// [ADDRESS,SIZE]=V`
    #[arg(long, value_name = "PATCH", hide = true)]
    patch: Vec<String>,
    /// A whole plan, as JSON; the other options add to it
    #[arg(long, value_name = "FILE", hide = true)]
    plan: Option<PathBuf>,
    /// A plan that takes its place soon after the program has started
    #[arg(long, value_name = "FILE", hide = true)]
    next_plan: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Nothing at all
    Nothing,
    /// Ticks, as recording counts them
    Ticks,
    /// Which blocks are executed
    Blocks,
    /// The address of every memory access
    Memory,
    /// The address and the value of every memory access
    Values,
    /// Every memory access is tested against a shadow that lets all of them pass
    Shadow,
}

impl Observe {
    /// Whether anything is to be observed or altered.
    pub fn is_asked_for(&self) -> bool {
        let several = [self.probe.len(), self.function.len(), self.patch.len()];
        self.observe != What::Nothing
            || several.into_iter().any(|count| count > 0)
            || self.plan.is_some()
            || self.next_plan.is_some()
    }

    /// The plan that the arguments ask for.
    pub fn plan(&self) -> anyhow::Result<Plan> {
        let mut plan = read(self.plan.as_ref())?.unwrap_or_default();
        match self.observe {
            What::Nothing => {}
            What::Ticks => plan.observe.ticks = true,
            What::Blocks => raise(&mut plan, Execution::Blocks),
            What::Memory => raise(&mut plan, Execution::Addresses),
            What::Values => raise(&mut plan, Execution::Values),
            What::Shadow if plan.shadow().is_some() => {}
            What::Shadow => {
                let everything = Shadow { reads: 0xff, writes: 0xff, paint: Vec::new() };
                plan.screens.push(Screen::Shadow(everything));
            }
        }
        let registers = ALL_REGISTERS;
        plan.stops.probes.extend(self.probe.iter().map(|pc| Probe { pc: *pc, registers }));
        plan.stops.names.extend(self.function.iter().cloned());
        for text in &self.patch {
            plan.patches.push(Patch::parse(text, patch::address)?);
        }
        Ok(plan)
    }

    /// The plan that comes after it, if there is one.
    pub fn next_plan(&self) -> anyhow::Result<Option<Plan>> {
        let plan = read(self.next_plan.as_ref())?;
        plan.iter().try_for_each(Plan::check_live)?;
        Ok(plan)
    }
}

/// At least so much of execution is observed.
fn raise(plan: &mut Plan, execution: Execution) {
    plan.observe.execution = plan.observe.execution.max(execution);
}

fn read(path: Option<&PathBuf>) -> anyhow::Result<Option<Plan>> {
    let Some(path) = path else { return Ok(None) };
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let plan = serde_json::from_slice(&text);
    plan.map(Some).with_context(|| format!("{} is no plan", path.display()))
}

/// Changes the plan a moment after the guest has started.
pub struct Changing {
    /// Eats the events.
    pub consumer: Box<dyn Consumer>,
    /// What to change to.
    pub plan: Option<Plan>,
}

impl Consumer for Changing {
    fn begin(&mut self, process: Process) {
        if let Some(plan) = self.plan.take() {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(100));
                process.control.set_plan(plan)
            });
        }
    }

    fn records(&mut self, bytes: &[u8]) {
        self.consumer.records(bytes);
    }

    fn end(&mut self) {
        self.consumer.end();
    }
}
