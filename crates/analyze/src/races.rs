//! **Data races**, deadlocks and lost updates of one run.
//!
//! Two accesses to the same bytes by different threads, one of them a write, race if nothing orders them.
//! What orders is known from the calls of the thread library ([`sync`]), from locked instructions, and
//! from system calls.
//!
//! - [`clock`]: vector clocks and epochs; [`locks`]: sets of locks, each kept once;
//! - [`cells`]: what is known of every byte: the last write, and the reads since;
//! - [`detector`]: takes accesses and synchronisation, and gives pairs that race;
//! - [`order`]: in which order locks are taken, who waits for whom; [`sections`]: values carried from
//!   one critical section into the next; [`waits`]: conditions that are waited for without a loop;
//! - [`pairs`]: two variables that belong together, and are seen half changed;
//! - [`channels`]: who wrote what came through pipes and sockets;
//! - [`shared`]: which memory several threads access, found by a quick pass before the others;
//! - [`meetings`]: atomic words that several threads access;
//! - [`stream`]: takes the records of a stream, and tells the detector what they mean.
//!
//! **Asks for** instructions with addresses, calls of the functions of [`sync::names`] and of allocators.
//! **Consumes** records. **Answers** with [`detector::Race`]s, [`order::Deadlock`]s,
//! [`sections::LostUpdate`]s, [`pairs::TornPair`]s and [`waits::Unchecked`] waits; sites in them are numbers that the stream knows ([`stream::Races::site`]).
//!
//! The method is FastTrack (Flanagan and Freund, PLDI 2009): exact for the run at hand. Whether accesses are
//! ordered only by the luck of who took a lock first is asked by a second detector, for which locks do not
//! order, and which instead looks whether a lock is held at both (after Savage et al., Eraser).

pub mod cells;
pub mod channels;
pub mod clock;
pub mod detector;
pub mod locks;
pub mod meetings;
pub mod order;
pub mod pairs;
pub mod sections;
pub mod shared;
pub mod stream;
pub mod sync;
pub mod waits;
mod words;
