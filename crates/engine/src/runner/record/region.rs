//! Recording a **region**: the guest runs at full speed to where the region begins; only then is the
//! process written down as it is, and a log kept until the region ends. Afterwards it runs on.
//!
//! While a region is awaited nothing is counted unless it begins by ticks, so the way there costs
//! what a plain run costs.

use super::{Recorder, image, position, refuse};
use crate::config::Point;
use crate::runner::cpu::cpu;
use crate::runner::engine::{Engine, engine};
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
    engine.region.stage = Stage::Before;
    match how.from {
        Some(point) => await_point(engine, point),
        None => enter(engine, thread),
    }
}

/// Arranges that the dispatcher is there when a point is reached.
fn await_point(engine: &mut Engine, point: Point) {
    engine.region.hits = 0;
    let (places, ticks) = match point {
        Point::Place { pc, .. } => (vec![pc], engine.recorder.is_some()),
        Point::Ticks(_) => (Vec::new(), true),
    };
    engine.stops.watch(places);
    engine.set_plan(engine.config.plan.clone().with_ticks(ticks));
    if let (Point::Ticks(count), None) = (point, &engine.recorder) {
        clock::arm(count);
    }
}

/// The log begins here.
fn begin(engine: &mut Engine, thread: &mut Thread) {
    let Some(how) = &engine.config.recording else { return };
    let mut recorder = Recorder::start(how, engine.numbers.host);
    clock::arm(recorder.scheduler.slice(clock::now()));
    baton::be_calm(true);
    engine.recorder = Some(recorder);
    image::write(engine, thread);
}

fn enter(engine: &mut Engine, thread: &mut Thread) {
    let shares = |thread: &&*mut Thread| {
        // SAFETY: threads in the list have not been freed.
        unsafe { (***thread).foreign && (***thread).tid > 0 }
    };
    if thread.foreign || engine.threads.iter().any(|thread| shares(&thread)) {
        refuse("the region begins while a child still shares the guest's memory (vfork)");
    }
    if engine.region.shares {
        refuse("the region begins when a child that is not part of it shares the guest's memory");
    }
    engine.region.stage = Stage::Inside;
    thread.move_out();
    engine.set_plan(engine.config.plan.clone().with_ticks(true));
    begin(engine, thread);
    match engine.config.recording.as_ref().and_then(|how| how.to) {
        Some(point) => await_point(engine, point),
        None => engine.stops.watch(Vec::new()),
    }
    if let Some(recorder) = &mut engine.recorder {
        recorder.began = clock::now();
    }
}

/// The region is over: the guest runs on, and nobody looks.
fn leave(engine: &mut Engine) {
    let at = position(&engine.memory);
    let Engine { recorder, memory, .. } = engine;
    if let Some(recorder) = recorder {
        recorder.put(&Entry::Stop(at), 0);
        recorder.log.finish();
        recorder.tree.leave(memory);
    }
    engine.recorder = None;
    engine.region.stage = Stage::Over;
    baton::be_calm(false);
    engine.stops.watch(Vec::new());
    engine.set_plan(engine.config.plan.clone().with_ticks(false));
}

/// In the dispatcher: whether a point that is waited for is here, and what then.
pub fn look(thread: &mut Thread) {
    let engine = engine();
    let stage = engine.region.stage;
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
    let point = if engine.region.stage == Stage::Before { how.from } else { how.to };
    match (point, &engine.recorder) {
        (Some(Point::Place { pc, count }), _) if cpu().registers.pc == pc => {
            engine.region.hits += 1;
            engine.region.hits == count
        }
        (Some(Point::Ticks(count)), Some(recorder)) => clock::now() >= recorder.began + count,
        (Some(Point::Ticks(count)), None) => clock::now() >= count,
        _ => false,
    }
}

/// How many ticks the region has left, if it ends by ticks.
pub fn left(engine: &Engine) -> u64 {
    let end = engine.config.recording.as_ref().and_then(|how| how.to);
    match (end, &engine.recorder) {
        (Some(Point::Ticks(count)), Some(recorder)) => {
            (recorder.began + count).saturating_sub(clock::now()).max(1)
        }
        _ => u64::MAX,
    }
}

/// In the child of a fork that came before the region: the region is its parent's.
pub fn forked(engine: &mut Engine) {
    if engine.region.stage == Stage::Before {
        engine.region.stage = Stage::Over;
        engine.config.recording = None;
        engine.stops.watch(Vec::new());
        engine.set_plan(engine.config.plan.clone().with_ticks(false));
    }
}
