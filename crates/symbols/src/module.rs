//! One file of a program together with its debug information, wherever that is kept. All
//! addresses here are the file's own; [`crate::program`] deals in those of the program.

use crate::address::FileAddress;
use crate::cfi::CallFrameInfo;
use crate::debug_files::DebugFiles;
use crate::debug_info::DebugInfo;
use crate::error::Error;
use crate::image::Image;
use crate::symbol_table::{Symbol, SymbolTable};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourceLine {
    /// The file as the debug information names it, with its folder.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; 0 if unknown.
    pub column: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file, self.line)
    }
}

/// A call that is active at an address: of a function, or of one inlined there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFrame {
    /// The function, demangled.
    pub function: Option<String>,
    /// The line that is being executed in it.
    pub line: Option<SourceLine>,
}

/// One file of a program.
pub struct Module {
    image: Image,
    files: DebugFiles,
    separate: OnceLock<Option<Image>>,
    symbols: OnceLock<SymbolTable>,
    debug: OnceLock<Option<DebugInfo>>,
    call_frames: OnceLock<CallFrameInfo>,
}

impl Module {
    /// Opens the file at `path`. Only headers are read; everything else waits until it is asked
    /// for.
    pub fn open(path: &Path, files: &DebugFiles) -> Result<Self, Error> {
        Ok(Self::new(Image::open(path)?, files))
    }

    /// A module of an image that is already open.
    #[must_use]
    pub fn new(image: Image, files: &DebugFiles) -> Self {
        Self {
            image,
            files: files.clone(),
            separate: OnceLock::new(),
            symbols: OnceLock::new(),
            debug: OnceLock::new(),
            call_frames: OnceLock::new(),
        }
    }

    /// The file itself.
    #[must_use]
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Whether there is debug information, in the file or apart from it.
    #[must_use]
    pub fn has_debug_info(&self) -> bool {
        self.debug().is_some()
    }

    /// The symbol tables, of the file and of its debug files.
    #[must_use]
    pub fn symbols(&self) -> &SymbolTable {
        self.symbols.get_or_init(|| SymbolTable::of(&self.image, self.separate()))
    }

    /// The function or stub that `address` is in, by the symbol tables.
    #[must_use]
    pub fn symbol_at(&self, address: FileAddress) -> Option<Symbol<'_>> {
        self.symbols().code_at(address)
    }

    /// The calls active at `address`, the innermost inlined one first. Without debug information
    /// the symbol tables supply the name; empty if not even they do.
    #[must_use]
    pub fn frames_at(&self, address: FileAddress) -> Vec<SourceFrame> {
        let mut frames = self.debug().map(|debug| debug.frames(address)).unwrap_or_default();
        let named = frames.last().is_some_and(|frame| frame.function.is_some());
        if !named && let Some(symbol) = self.symbol_at(address) {
            let function = Some(symbol.demangled());
            match frames.last_mut() {
                Some(frame) => frame.function = function,
                None => frames.push(SourceFrame { function, line: None }),
            }
        }
        frames
    }

    pub(crate) fn call_frames(&self) -> &CallFrameInfo {
        self.call_frames.get_or_init(|| CallFrameInfo::of(&self.image, self.separate()))
    }

    pub(crate) fn debug(&self) -> Option<&DebugInfo> {
        let load = || {
            let own = DebugInfo::load(self.image.path(), &self.image, &self.files);
            own.or_else(|| DebugInfo::load(self.image.path(), self.separate()?, &self.files))
        };
        self.debug.get_or_init(load).as_ref()
    }

    fn separate(&self) -> Option<&Image> {
        let find = || (!self.image.has(".debug_info")).then(|| self.files.of(&self.image))?;
        self.separate.get_or_init(find).as_ref()
    }
}
