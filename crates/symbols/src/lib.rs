//! What a program's files say about it: functions, lines, variables, types, and how to read a
//! stack and a value.
//!
//! The crate knows ELF and DWARF. It does not know running processes, recordings or the engine:
//! callers hand it the loaded modules, the registers and a [`Memory`] to read from as plain data,
//! and get typed answers. The parts, bottom up:
//!
//! - [`image`]: one ELF file, sections loaded when first asked for;
//! - [`debug_files`]: where separate debug information is found;
//! - [`symbol_table`], [`demangle`]: names without debug information;
//! - [`module`]: one file with its debug information, in addresses of the file;
//! - [`program`]: all modules of a program, in addresses of the program; [`code`], [`objects`] and
//!   [`place`] add questions to it;
//! - [`unwind`]: from registers and a stack to frames;
//! - [`scene`]: a moment of one thread. Values start there: [`variables`], [`expression`],
//!   [`members`], [`collections`], [`print`](mod@print), and the reverse, [`naming`].
//!
//! Debug information is input like any other: whatever is in it, nothing here panics or hangs.
#![forbid(unsafe_code)]

pub mod address;
mod cache;
mod cfi;
pub mod code;
pub mod collections;
pub mod debug_files;
mod debug_info;
pub mod declared;
pub mod demangle;
pub mod error;
pub mod expression;
pub mod frame_layout;
pub mod image;
mod lines;
mod location;
pub mod members;
pub mod module;
mod names;
pub mod naming;
pub mod objects;
pub mod place;
mod plt;
mod prefixes;
pub mod print;
pub mod program;
pub mod registers;
pub mod scene;
mod scope;
pub mod signature;
pub mod suggest;
pub mod symbol_table;
mod tls;
pub mod types;
mod units;
pub mod unwind;
pub mod value;
pub mod value_ranges;
pub mod variables;

pub use address::FileAddress;
pub use code::{FunctionCode, LineCode};
pub use debug_files::DebugFiles;
pub use declared::Declared;
pub use error::Error;
pub use expression::evaluate::ValueError;
pub use frame_layout::{FrameLayout, FrameLocal};
pub use image::Image;
pub use module::{Module, SourceFrame, SourceLine};
pub use naming::Naming;
pub use objects::Object;
pub use place::{CodeLocation, PlaceError, PlaceName};
pub use print::Printing;
pub use program::{LoadedModule, Program};
pub use registers::{Memory, Register, Registers};
pub use scene::{Level, Scene};
pub use types::{Type, TypeRef};
pub use units::EntryId;
pub use unwind::{FoundBy, Frame, Stack};
pub use value::{Held, Home, Lost, Value};
pub use variables::{Call, Variable};

/// The name that programmers know a function of the C library by, as far as it is a matter of what stands in front:
/// `__GI___qsort_r`, which only its debug information has, is `qsort_r`.
#[must_use]
pub fn plain_name(function: &str) -> &str {
    function.trim_start_matches("__GI_").trim_start_matches('_')
}
