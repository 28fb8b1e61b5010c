//! Timed waits and sleeps whose time is over before it is: the guest's clocks are put forward instead.
//!
//! Natively a sleeping thread may well be the first to go on, if the others are not scheduled meanwhile.
//! While recording, all others have run until they wait when a sleep of a millisecond is over, so what a
//! timed-out wait does would never be seen. Where the schedule says so, a wait ends at once, as if its
//! time had passed while nobody else ran. The clocks that the guest reads stay consistent with that;
//! times of files and the processor's time-stamp counter are not put forward. Only waits that a busy
//! machine might outlast: who sleeps for a minute sleeps for ever, as far as the others are concerned.

use crate::runner::engine::Engine;
use crate::runner::guest::{self, Checked};
use crate::runner::signal::frame::GuestMemory;
use crate::runner::syscall::Outcome;
use crate::sys::syscall;

const SECOND: u64 = 1_000_000_000;
/// The longest wait that may end at once.
const LONGEST: u64 = 10 * SECOND;

/// How far the guest's clocks are ahead of the kernel's.
#[derive(Default)]
pub struct Ahead {
    nanoseconds: u64,
}

/// A moment or a length of time, in nanoseconds.
#[derive(Clone, Copy)]
pub enum Until {
    /// From now on.
    For(u64),
    /// When a clock shows this.
    At(i32, u64),
}

impl Ahead {
    /// How long it is until then by the guest's clocks.
    fn left(&self, until: Until) -> u64 {
        match until {
            Until::For(length) => length,
            Until::At(clock, time) => {
                time.saturating_sub(kernel_time(clock).saturating_add(self.nanoseconds))
            }
        }
    }

    fn reach(&mut self, until: Until) {
        self.nanoseconds += self.left(until);
    }
}

fn kernel_time(clock: i32) -> u64 {
    let mut now = [0u64; 2];
    // SAFETY: the kernel writes one `struct timespec`.
    unsafe { syscall!(libc::SYS_clock_gettime, clock, now.as_mut_ptr()) };
    now[0].saturating_mul(SECOND).saturating_add(now[1])
}

fn time_at(address: u64) -> Option<u64> {
    let (seconds, rest) = (guest::read_u64(address)?, guest::read_u64(address + 8)?);
    (seconds < i64::MAX as u64 && rest < SECOND).then_some(())?;
    Some(seconds.saturating_mul(SECOND).saturating_add(rest))
}

/// Whether a wait for a futex until the time at `timeout` ends at once.
pub fn ends_early(engine: &mut Engine, timeout: u64, clock: Option<i32>) -> bool {
    let Some(time) = (timeout != 0).then(|| time_at(timeout)).flatten() else { return false };
    let Some(recorder) = &mut engine.log.recorder else { return false };
    let until = clock.map_or(Until::For(time), |clock| Until::At(clock, time));
    let early = recorder.ahead.left(until) <= LONGEST && recorder.scheduler.ends_early();
    if early {
        recorder.ahead.reach(until);
    }
    early
}

/// The time of the kernel's clocks that stands for an absolute time of the guest's, if it differs.
pub fn kernel_deadline(engine: &Engine, timeout: u64, is_absolute: bool) -> Option<[u64; 2]> {
    let ahead = engine.log.recorder.as_ref()?.ahead.nanoseconds;
    let time = (is_absolute && timeout != 0 && ahead > 0).then(|| time_at(timeout)).flatten()?;
    let time = time.saturating_sub(ahead);
    Some([time / SECOND, time % SECOND])
}

/// The answer to a sleep that ends at once.
pub fn sleep(engine: &mut Engine, number: u64, a: [u64; 6]) -> Option<Outcome> {
    let recorder = engine.log.recorder.as_mut()?;
    if !recorder.scheduler.minds_events() {
        return None;
    }
    let (clock, absolute, request) = match number as i64 {
        libc::SYS_nanosleep => (libc::CLOCK_MONOTONIC, false, a[0]),
        _ => (a[0] as i32, a[1] as i32 & libc::TIMER_ABSTIME != 0, a[2]),
    };
    let time = time_at(request)?;
    if !is_wall(clock) {
        return None;
    }
    let until = if absolute { Until::At(clock, time) } else { Until::For(time) };
    if recorder.ahead.left(until) > LONGEST {
        return None;
    }
    let early = recorder.scheduler.ends_early();
    // What the kernel sleeps until would be later than the guest's time.
    let at_once = early || absolute && recorder.ahead.nanoseconds > 0;
    if !at_once {
        return None;
    }
    recorder.ahead.reach(until);
    Some(Outcome::Answer(0))
}

/// Whether a clock goes on while nobody runs.
fn is_wall(clock: i32) -> bool {
    matches!(
        clock,
        libc::CLOCK_REALTIME
            | libc::CLOCK_MONOTONIC
            | libc::CLOCK_MONOTONIC_RAW
            | libc::CLOCK_REALTIME_COARSE
            | libc::CLOCK_MONOTONIC_COARSE
            | libc::CLOCK_BOOTTIME
            | libc::CLOCK_TAI
    )
}

/// A call that tells the time has returned: the time that the guest gets to see, in memory and as the
/// answer.
pub fn read(engine: &Engine, number: u64, a: [u64; 6], answer: i64) -> i64 {
    let ahead = engine.log.recorder.as_ref().map_or(0, |recorder| recorder.ahead.nanoseconds);
    if ahead == 0 || answer < 0 {
        return answer;
    }
    match number as i64 {
        libc::SYS_clock_gettime if is_wall(a[0] as i32) => put_forward(a[1], ahead, 1),
        libc::SYS_gettimeofday if a[0] != 0 => put_forward(a[0], ahead, 1000),
        libc::SYS_time => {
            let later = answer + (ahead / SECOND) as i64;
            if a[0] != 0 {
                Checked.write(a[0], &later.to_le_bytes());
            }
            return later;
        }
        _ => {}
    }
    answer
}

/// Adds to a time in memory: seconds, and a rest in units of so many nanoseconds.
fn put_forward(address: u64, ahead: u64, unit: u64) {
    let (Some(seconds), Some(rest)) = (guest::read_u64(address), guest::read_u64(address + 8))
    else {
        return;
    };
    let rest = rest * unit + ahead % SECOND;
    let seconds = seconds + ahead / SECOND + rest / SECOND;
    let mut bytes = seconds.to_le_bytes().to_vec();
    bytes.extend((rest % SECOND / unit).to_le_bytes());
    Checked.write(address, &bytes);
}
