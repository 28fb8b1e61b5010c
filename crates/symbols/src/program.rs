//! All modules of a program where they are loaded, and questions in the program's own addresses.

use crate::address::FileAddress;
use crate::debug_files::DebugFiles;
use crate::error::Error;
use crate::module::{Module, SourceFrame};
use base::{Address, Place, Range};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A file of the program and where it is: plain data that whoever watches the program supplies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedModule {
    /// The file.
    pub path: PathBuf,
    /// What the loader added to the addresses of the file.
    pub bias: u64,
    /// All addresses that the file occupies.
    pub range: Range,
}

/// A module of a program, opened or with the reason why it could not be.
pub struct ProgramModule {
    loaded: LoadedModule,
    module: Result<Module, Error>,
}

impl ProgramModule {
    /// Where the module is.
    #[must_use]
    pub fn loaded(&self) -> &LoadedModule {
        &self.loaded
    }

    /// What the loader added to the addresses of the file.
    #[must_use]
    pub fn bias(&self) -> u64 {
        self.loaded.bias
    }

    /// The module, if it could be opened.
    #[must_use]
    pub fn module(&self) -> Option<&Module> {
        self.module.as_ref().ok()
    }
}

/// A program: its modules by address.
pub struct Program {
    modules: Vec<ProgramModule>,
}

/// What is known of a code address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodePlace {
    /// The address.
    pub address: Address,
    /// The file it is in, if any.
    pub module: Option<PathBuf>,
    /// The function by symbol table and how far into it the address is.
    pub symbol: Option<(String, u64)>,
    /// The calls active there, the innermost inlined one first. Empty if nothing is known.
    pub frames: Vec<SourceFrame>,
}

impl CodePlace {
    /// The innermost call as a place for findings.
    #[must_use]
    pub fn place(&self) -> Place {
        let frame = self.frames.first();
        let line = frame.and_then(|frame| frame.line.as_ref());
        Place {
            file: line.map(|line| line.file.clone()),
            line: line.map(|line| line.line),
            function: frame.and_then(|frame| frame.function.clone()),
            address: Some(self.address),
        }
    }
}

impl Program {
    /// Opens the modules of a program. One that cannot be opened costs only the answers that
    /// need it; [`Program::problems`] tells.
    #[must_use]
    pub fn open(modules: impl IntoIterator<Item = LoadedModule>, files: &DebugFiles) -> Self {
        let open = |loaded: LoadedModule| ProgramModule {
            module: Module::open(&loaded.path, files),
            loaded,
        };
        Self::sorted(modules.into_iter().map(open).collect())
    }

    /// A program of modules that are already open, such as those whose files a recording holds.
    #[must_use]
    pub fn of_modules(modules: impl IntoIterator<Item = (LoadedModule, Module)>) -> Self {
        let opened = |(loaded, module)| ProgramModule { loaded, module: Ok(module) };
        Self::sorted(modules.into_iter().map(opened).collect())
    }

    fn sorted(mut modules: Vec<ProgramModule>) -> Self {
        modules.sort_by_key(|module| module.loaded.range.start);
        Self { modules }
    }

    /// The modules, by address.
    #[must_use]
    pub fn modules(&self) -> &[ProgramModule] {
        &self.modules
    }

    /// Why modules could not be opened.
    pub fn problems(&self) -> impl Iterator<Item = &Error> {
        self.modules.iter().filter_map(|module| module.module.as_ref().err())
    }

    /// The module that `address` is in, and its index in [`Program::modules`].
    #[must_use]
    pub fn locate(&self, address: Address) -> Option<(&ProgramModule, usize)> {
        let end = self.modules.partition_point(|module| module.loaded.range.start <= address);
        let index = end.checked_sub(1)?;
        let module = &self.modules[index];
        module.loaded.range.contains(address).then_some((module, index))
    }

    /// What is known of the code at `address`. For a caller's frame pass [`crate::Frame::code`].
    #[must_use]
    pub fn symbolise(&self, address: Address) -> CodePlace {
        let found = self.locate(address);
        let module = found.and_then(|(loaded, _)| loaded.module());
        let bias = found.map_or(0, |(loaded, _)| loaded.bias());
        let at = FileAddress::unloaded(address, bias);
        let symbol = module.and_then(|module| module.symbol_at(at));
        CodePlace {
            address,
            module: found.map(|(loaded, _)| loaded.loaded.path.clone()),
            symbol: symbol.map(|symbol| (symbol.demangled(), at.0 - symbol.address.0)),
            frames: module.map(|module| module.frames_at(at)).unwrap_or_default(),
        }
    }

    /// The function, stub or object that `address` is in, and how far into it.
    #[must_use]
    pub fn symbol_at(&self, address: Address) -> Option<(String, u64)> {
        let (loaded, _) = self.locate(address)?;
        let at = FileAddress::unloaded(address, loaded.bias());
        let symbols = loaded.module()?.symbols();
        let symbol = symbols.object_at(at).or_else(|| symbols.code_at(at))?;
        Some((symbol.demangled(), at.0 - symbol.address.0))
    }

    /// Where the object called `name` is, as module number `from` would see it: its own first.
    pub(crate) fn object_named(&self, from: usize, name: &str) -> Option<Address> {
        let own = self.modules.get(from).into_iter();
        own.chain(&self.modules).find_map(|loaded| {
            let symbols = loaded.module()?.symbols();
            let found = symbols.objects_named(name).next()?;
            Some(found.address.loaded(loaded.bias()))
        })
    }

    /// Whether code is loaded at `address`. A module that could not be opened is given the
    /// benefit of the doubt.
    #[must_use]
    pub fn is_code(&self, address: Address) -> bool {
        self.locate(address).is_some_and(|(loaded, _)| {
            let at = FileAddress::unloaded(address, loaded.bias());
            loaded.module().is_none_or(|module| module.image().is_code(at))
        })
    }

    /// Fills `buffer` with the code that the file has for `address`.
    #[must_use]
    pub fn code_bytes(&self, address: Address, buffer: &mut [u8]) -> bool {
        let bytes = self.locate(address).and_then(|(loaded, _)| {
            let at = FileAddress::unloaded(address, loaded.bias());
            loaded.module()?.image().bytes_at(at, buffer.len() as u64)
        });
        match bytes {
            Some(bytes) if bytes.len() == buffer.len() => {
                buffer.copy_from_slice(&bytes);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Program;

    #[test]
    fn a_program_may_be_shared_by_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Program>();
    }
}
