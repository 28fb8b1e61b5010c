//! Recording a **region**: the guest runs at full speed to where the region begins; only then is the
//! process written down as it is, and a log kept until the region ends. Afterwards it runs on.
//!
//! While a region is awaited nothing is counted unless it begins by ticks, so the way there costs
//! what a plain run costs.

use super::{Recorder, image, position, refuse};
use crate::config::Point;
use crate::runner::engine::Engine;
use crate::runner::thread::Thread;
use crate::runner::{baton, clock};
use recording::log::Entry;

/// What of a run is recorded.
#[derive(Default)]
pub struct Region {
    stage: Stage,
    /// How often the place was met that the next stage begins at.
    hits: u64,
    /// Whether a child that is not recorded shares writable memory with this process.
    pub shares: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    /// No region: all of the run is recorded, or nothing.
    #[default]
    None,
    Before,
    Inside,
    Over,
}

/// Starts the log of a fresh process, or waits for its region.
pub fn start(engine: &mut Engine, thread: &mut Thread) {
    let Some(how) = engine.config.recording.clone() else { return };
    super::files::map_shared(how.shared);
    if how.from.is_none() && how.to.is_none() {
        return begin(engine, thread);
    }
    engine.log.region.stage = Stage::Before;
    match how.from {
        Some(point) => await_point(engine, point),
        None => {
            // Its registers are where those of a running thread are.
            thread.move_in(&mut engine.cpu);
            enter(engine, thread);
        }
    }
}

/// Arranges that the dispatcher is there when a point is reached.
fn await_point(engine: &mut Engine, point: Point) {
    engine.log.region.hits = 0;
    let (places, ticks) = match point {
        Point::Place { pc, .. } => (vec![pc], engine.log.recorder.is_some()),
        Point::Ticks(_) => (Vec::new(), true),
    };
    engine.observed.stops.watch(places);
    engine.set_plan(engine.config.plan.clone().with_ticks(ticks));
    if let (Point::Ticks(count), None) = (point, &engine.log.recorder) {
        clock::arm(&mut engine.cpu, count);
    }
}

/// The log begins here.
fn begin(engine: &mut Engine, thread: &mut Thread) {
    let Some(how) = &engine.config.recording else { return };
    let mut recorder = Recorder::start(&engine.cpu, how, engine.process.numbers.host);
    let slice = recorder.scheduler.slice(clock::now(&engine.cpu));
    clock::arm(&mut engine.cpu, slice);
    baton::be_calm(true);
    let points: Vec<u64> = how.switch_points.iter().map(|point| point.pc).collect();
    engine.log.recorder = Some(recorder);
    if !points.is_empty() {
        engine.observed.stops.watch(points);
        engine.set_plan(engine.config.plan.clone());
    }
    image::write(engine, thread);
}

fn enter(engine: &mut Engine, thread: &mut Thread) {
    let shares = |thread: &&*mut Thread| {
        // SAFETY: threads in the list have not been freed.
        unsafe { (***thread).foreign && (***thread).tid() > 0 }
    };
    if thread.foreign || engine.threads.list.iter().any(|thread| shares(&thread)) {
        refuse(engine, "the region begins while a child still shares the guest's memory (vfork)");
    }
    if engine.log.region.shares {
        refuse(
            engine,
            "the region begins when a child that is not part of it shares the guest's memory",
        );
    }
    engine.log.region.stage = Stage::Inside;
    thread.move_out(engine);
    engine.set_plan(engine.config.plan.clone().with_ticks(true));
    begin(engine, thread);
    match engine.config.recording.as_ref().and_then(|how| how.to) {
        Some(point) => await_point(engine, point),
        None => engine.observed.stops.watch(Vec::new()),
    }
    if let Some(recorder) = &mut engine.log.recorder {
        recorder.began = clock::now(&engine.cpu);
    }
}

/// The region is over: the guest runs on, and nobody looks.
fn leave(engine: &mut Engine) {
    let at = position(engine);
    let Engine { log, process, .. } = engine;
    let (recorder, memory) = (&mut log.recorder, &process.memory);
    if let Some(recorder) = recorder {
        recorder.put(&Entry::Stop(at), 0);
        recorder.log.finish();
        recorder.tree.leave(memory);
    }
    engine.log.recorder = None;
    engine.log.region.stage = Stage::Over;
    baton::be_calm(false);
    engine.observed.stops.watch(Vec::new());
    engine.set_plan(engine.config.plan.clone().with_ticks(false));
}

/// In the dispatcher: whether a point that is waited for is here, and what then.
pub fn look(engine: &mut Engine, thread: &mut Thread) {
    let stage = engine.log.region.stage;
    if matches!(stage, Stage::None | Stage::Over) || !is_here(engine) {
        return;
    }
    match stage {
        Stage::Before => enter(engine, thread),
        _ => leave(engine),
    }
}

fn is_here(engine: &mut Engine) -> bool {
    let Some(how) = &engine.config.recording else { return false };
    let point = if engine.log.region.stage == Stage::Before { how.from } else { how.to };
    match (point, &engine.log.recorder) {
        (Some(Point::Place { pc, count }), _) if engine.cpu.registers.pc == pc => {
            engine.log.region.hits += 1;
            engine.log.region.hits == count
        }
        (Some(Point::Ticks(count)), Some(recorder)) => {
            clock::now(&engine.cpu) >= recorder.began + count
        }
        (Some(Point::Ticks(count)), None) => clock::now(&engine.cpu) >= count,
        _ => false,
    }
}

/// How many ticks the region has left, if it ends by ticks.
pub fn left(engine: &Engine) -> u64 {
    let end = engine.config.recording.as_ref().and_then(|how| how.to);
    match (end, &engine.log.recorder) {
        (Some(Point::Ticks(count)), Some(recorder)) => {
            (recorder.began + count).saturating_sub(clock::now(&engine.cpu)).max(1)
        }
        _ => u64::MAX,
    }
}

/// In the child of a fork that came before the region: the region is its parent's.
pub fn forked(engine: &mut Engine) {
    if engine.log.region.stage == Stage::Before {
        engine.log.region.stage = Stage::Over;
        engine.config.recording = None;
        engine.observed.stops.watch(Vec::new());
        engine.set_plan(engine.config.plan.clone().with_ticks(false));
    }
}
