//! Inside the guest's process: everything that makes a guest run.
//!
//! * [`start`] turns a fresh process into a runner; [`load`] brings the guest in;
//! * [`engine`] is the dispatcher; [`translate`] and [`cache`] make and keep translations;
//! * [`syscall`], [`signal`], [`thread`] and [`baton`] stand between the guest and the kernel;
//! * [`record`] writes down what a replay needs, [`replay`] does it again;
//! * [`screens`] test what is executed, [`stops`] are places of probes and patches, [`orders`] come from the
//!   host while the guest runs;
//! * [`memory`] is the guest's address space, [`crate::layout`] the rules for sharing it.
//!
//! Only the holder of the [`baton`] runs any of this but for [`signal::handler`].

pub mod address_map;
pub mod arena;
pub mod baton;
pub mod buffers;
pub mod cache;
pub mod clock;
pub mod context;
pub mod contracts;
pub mod cpu;
pub mod emulate;
pub mod engine;
pub mod events;
pub mod explicit;
pub mod follow;
pub mod futex;
pub mod guard;
pub mod guest;
pub mod load;
pub mod memory;
pub mod numbers;
pub mod orders;
pub mod own;
pub mod plan;
pub mod procfs;
pub mod record;
pub mod replay;
pub mod report;
pub mod robust;
pub mod screens;
pub mod signal;
mod sites;
pub mod stack;
pub mod start;
pub mod stops;
pub mod stream;
pub mod syscall;
pub mod thread;
pub mod traced;
pub mod translate;
mod vsyscall;
