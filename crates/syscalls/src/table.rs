//! All system calls of x86-64 Linux, up to Linux 6.18, in one file a family.
//!
//! A line of a family is all there is to a call: `NUMBER name(arguments), writes ROW, reads FUNCTION;`.
//! Without `writes` it writes nothing into the memory of the caller; `reads` is for what the kinds of
//! its arguments cannot tell. A number that is given twice does not compile.

use crate::signature::SystemCall;

/// Defines a family: its calls, and their numbers as constants.
macro_rules! system_calls {
    ($($number:literal $name:ident($($argument:expr),*)
        $(, writes $row:expr)? $(, reads $reads:expr)?;)*) => {
        /// Numbers of this family's calls, under their names.
        #[expect(non_upper_case_globals, reason = "the kernel's own spelling")]
        pub mod number {
            $(
                #[doc = concat!("The number of `", stringify!($name), "`.")]
                pub const $name: u64 = $number;
            )*
        }

        pub(super) const CALLS: &[$crate::SystemCall] = &[$($crate::SystemCall {
            number: $number,
            name: stringify!($name),
            arguments: {
                #[allow(clippy::enum_glob_use, unused_imports, reason = "a signature is its kinds")]
                use $crate::signature::{Argument::*, VARIES};
                &[$($argument),*]
            },
            row: $crate::table::row(&[$($row)?], &[$($crate::row::Take::Rule($reads))?]),
        }),*];
    };
}

mod files;
mod ioctl;
mod ipc;
mod memory;
mod processes;
mod signals;
mod sockets;
mod system;
mod time;
mod waiting;

/// Numbers of system calls, under their names.
pub mod number {
    pub use super::files::number::*;
    pub use super::ioctl::number::*;
    pub use super::ipc::number::*;
    pub use super::memory::number::*;
    pub use super::processes::number::*;
    pub use super::signals::number::*;
    pub use super::sockets::number::*;
    pub use super::system::number::*;
    pub use super::time::number::*;
    pub use super::waiting::number::*;
}

pub(crate) use sockets::Message;

use crate::row::{Row, Take};

/// The row of a call, of which the macro gives no or one row and no or one function.
const fn row(given: &[Row], takes: &'static [Take]) -> Row {
    match given {
        [] => Row::takes(takes),
        [row, ..] if takes.is_empty() => *row,
        [row, ..] => row.taking(takes),
    }
}

/// Numbers are below this.
const MOST: usize = 512;

/// The calls by number.
pub(crate) static CALLS: [Option<SystemCall>; MOST] = calls();

const fn calls() -> [Option<SystemCall>; MOST] {
    let mut all = [None; MOST];
    all = add(all, files::CALLS);
    all = add(all, ioctl::CALLS);
    all = add(all, ipc::CALLS);
    all = add(all, memory::CALLS);
    all = add(all, processes::CALLS);
    all = add(all, signals::CALLS);
    all = add(all, sockets::CALLS);
    all = add(all, system::CALLS);
    all = add(all, time::CALLS);
    add(all, waiting::CALLS)
}

const fn add(
    mut all: [Option<SystemCall>; MOST],
    family: &[SystemCall],
) -> [Option<SystemCall>; MOST] {
    let mut at = 0;
    while at < family.len() {
        let number = family[at].number as usize;
        assert!(all[number].is_none(), "a call is listed twice");
        all[number] = Some(family[at]);
        at += 1;
    }
    all
}
