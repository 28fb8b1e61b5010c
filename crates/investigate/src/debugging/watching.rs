//! Watched memory: a shadow is painted over it, and every access that does not pass tells its moment. What the
//! kernel writes is no access of an instruction; it is found by comparing what the memory holds.

use super::Debugger;
use crate::error::fault_or_input;
use events::decode::{Decoder, Event};
use events::plan::{Paint, Screen, Shadow};
use events::suspicion::Suspicion;
use events::{Consumer, Plan};
use replay::{Instant, StoppedProcess};
use std::sync::{Arc, Mutex, PoisonError};

/// Memory to stop at, and at which accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Its first address.
    pub address: u64,
    /// Its bytes.
    pub size: u64,
    /// Stop where it is read.
    pub reads: bool,
    /// Stop where it is written.
    pub writes: bool,
}

/// An access to watched memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Which memory.
    pub watch: Watch,
    /// Whether it was written.
    pub write: bool,
}

/// An access to watched memory and the instruction that makes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub at: Instant,
    pub watched: Watched,
    /// The kernel's number of the thread that makes it, if that is known.
    pub thread: Option<i32>,
}

const READ: u8 = 1;
const WRITTEN: u8 = 2;

impl Watch {
    fn is_touched(&self, address: u64, size: u64, write: bool) -> bool {
        let asked = if write { self.writes } else { self.reads };
        asked && address < self.address + self.size && self.address < address.saturating_add(size)
    }
}

/// Collects accesses.
#[derive(Clone)]
struct Touches {
    watches: Arc<[Watch]>,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    decoder: Decoder,
    running: Option<i32>,
    touches: Vec<Touch>,
}

impl Consumer for Touches {
    fn records(&mut self, bytes: &[u8]) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let Inner { decoder, running, touches } = &mut *inner;
        // Only a damaged stream is malformed, and the replay that sent it tells of that itself.
        let _ = decoder.events(bytes, |event| {
            let (pc, time, access) = match event {
                Event::Suspect { pc, time, suspicion: Suspicion::Painted { access, .. } } => {
                    (pc, time, access)
                }
                Event::Thread(thread) => {
                    *running = Some(thread as i32);
                    return;
                }
                _ => return,
            };
            let size = u64::from(access.size);
            let meant = |watch: &&Watch| watch.is_touched(access.address, size, access.write);
            if let Some(watch) = self.watches.iter().find(meant) {
                let watched = Watched { watch: *watch, write: access.write };
                let at = Instant { time, pc: Some(pc) };
                touches.push(Touch { at, watched, thread: *running });
            }
        });
    }
}

fn plan(watches: &[Watch]) -> Plan {
    let paint = |watch: &Watch| Paint {
        range: watch.address..watch.address.saturating_add(watch.size),
        bits: (u8::from(watch.reads) * READ) | (u8::from(watch.writes) * WRITTEN),
    };
    // Granules that two of them share get the bits of the later one alone, so all get all.
    let all = watches.iter().map(paint).fold(0, |bits, paint| bits | paint.bits);
    let paint = watches.iter().map(|watch| Paint { bits: all, ..paint(watch) }).collect();
    Plan::screening(Screen::Shadow(Shadow { reads: READ, writes: WRITTEN, paint }))
}

impl Debugger<'_> {
    /// Accesses to watched memory from where a process stands to a moment, in order. The process goes on to there.
    pub(super) fn touches(
        &mut self,
        from: &mut StoppedProcess,
        to: Option<Instant>,
    ) -> anyhow::Result<Vec<Touch>> {
        let watches: Arc<[Watch]> = self.watches.clone().into();
        let consumer = Touches { watches: watches.clone(), inner: Arc::default() };
        let plan = plan(&watches);
        self.line.observe_on(from, to, plan, Box::new(consumer.clone())).map_err(fault_or_input)?;
        let mut inner = consumer.inner.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut inner.touches))
    }
}
