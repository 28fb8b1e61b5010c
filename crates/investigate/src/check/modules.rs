//! The program's files as it maps them: where functions are that rules name, and what to read
//! lines and names from afterwards.

use super::{implementations, rooms};
use analyze::rules::machine::dynamic::Probe;
use analyze::rules::machine::locals::{Finder, Function, Local};
use base::allocator::{Allocator, Allocators, Role};
use base::{Address, ModuleKind, ModuleMap, Range};
use events::plan::CONTRACTS;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use symbols::symbol_table::{SymbolKind, SymbolTable};
use symbols::{DebugFiles, FileAddress, FrameLocal, Image, LoadedModule, Module, Program};

/// What is known of the program's files, shared with whoever is asked for functions.
#[derive(Clone, Default)]
pub struct Modules(Arc<Mutex<ModuleFacts>>);

#[derive(Clone, Default)]
struct ModuleFacts {
    maps: Vec<ModuleMap>,
    functions: Vec<(u64, String)>,
    /// Variables: address and size.
    variables: Vec<(u64, u64)>,
    /// Functions with contracts: their names, and where their code is.
    contracts: Vec<(String, std::ops::Range<u64>)>,
    /// The program's variables of threads: how far below the thread pointer, and size.
    thread_locals: Vec<(u64, u64)>,
    /// Where registers are of interest.
    probes: Vec<(u64, Probe)>,
    /// Code that uses what nobody wrote on purpose.
    excused: Vec<std::ops::Range<u64>>,
    /// What each file has.
    files: BTreeMap<String, Arc<Contents>>,
    /// Code whose functions' frames are of interest: where it is, what the loader added, its file.
    code: Vec<(std::ops::Range<u64>, u64, String)>,
    /// Files that were looked into for frames.
    opened: BTreeMap<String, Option<Arc<Module>>>,
}

/// What a file has, at addresses of the file.
#[derive(Default)]
struct Contents {
    functions: Vec<(String, u64)>,
    /// Variables: address and size.
    variables: Vec<(u64, u64)>,
    /// Functions with contracts: their names, and where their code is.
    contracts: Vec<(String, std::ops::Range<u64>)>,
    /// Of a program, variables of threads: how far below the thread pointer, and size.
    thread_locals: Vec<(u64, u64)>,
    /// Where registers are of interest.
    probes: Vec<(u64, Probe)>,
    /// Functions that use what nobody wrote on purpose.
    excused: Vec<std::ops::Range<u64>>,
    /// Whether all of its code does.
    go: bool,
}

/// What is looked for in files.
#[derive(Clone)]
pub struct Wanted {
    /// Functions.
    pub names: Vec<String>,
    /// Those of them whose stubs are meant.
    pub called: Vec<String>,
    /// Whether variables are of interest.
    pub variables: bool,
    /// Whether functions with contracts are.
    pub contracts: bool,
}

impl Modules {
    fn lock(&self) -> MutexGuard<'_, ModuleFacts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The files of a child that was forked now.
    pub fn fork(&self) -> Self {
        Self(Arc::new(Mutex::new(self.lock().clone())))
    }

    /// A piece of a file has been mapped: the functions in it.
    pub fn note(&self, map: &ModuleMap, wanted: &Wanted) -> Vec<(u64, String)> {
        let mut known = self.lock();
        let Some((loaded, code)) = loaded(map) else { return Vec::new() };
        known.maps.push(ModuleMap { end: code.end, ..map.clone() });
        let file = known.files.entry(map.path.clone());
        let found = file.or_insert_with(|| Arc::new(Contents::of(&map.path, wanted))).clone();
        if !is_runtime(&map.path) {
            let here = found.variables.iter();
            known.variables.extend(here.map(|(at, size)| (at.wrapping_add(loaded.bias), *size)));
            known.thread_locals.extend(&found.thread_locals);
            known.code.push((code.clone(), loaded.bias, map.path.clone()));
        }
        let at = |address: u64| address.wrapping_add(loaded.bias);
        known.excused.extend(found.excused.iter().map(|code| at(code.start)..at(code.end)));
        known.excused.extend(found.go.then(|| code.clone()));
        known.probes.extend(found.probes.iter().map(|(pc, probe)| (at(*pc), *probe)));
        let mut addresses = Vec::new();
        for (name, address) in &found.functions {
            let address = address.wrapping_add(loaded.bias);
            if code.contains(&address) {
                known.functions.push((address, name.clone()));
                addresses.push((address, name.clone()));
            }
        }
        for (name, function) in &found.contracts {
            let function = at(function.start)..at(function.end);
            addresses.push((function.start, format!("{CONTRACTS}{name}")));
            known.contracts.push((name.clone(), function));
        }
        addresses.sort_unstable();
        addresses.dedup_by_key(|(address, _)| *address);
        addresses
    }

    /// Functions found so far, from the given one on.
    pub fn functions(&self, from: usize) -> Vec<(u64, String)> {
        self.lock().functions.get(from..).unwrap_or_default().to_vec()
    }

    /// Functions with contracts found so far, from the given one on.
    pub fn contracts(&self, from: usize) -> Vec<(String, std::ops::Range<u64>)> {
        self.lock().contracts.get(from..).unwrap_or_default().to_vec()
    }

    /// Variables found so far, from the given one on.
    pub fn variables(&self, from: usize) -> Vec<(u64, u64)> {
        self.lock().variables.get(from..).unwrap_or_default().to_vec()
    }

    /// The program's variables of threads found so far, from the given one on.
    pub fn thread_locals(&self, from: usize) -> Vec<(u64, u64)> {
        self.lock().thread_locals.get(from..).unwrap_or_default().to_vec()
    }

    /// Where registers are of interest, as found so far, from the given one on.
    pub fn probes(&self, from: usize) -> Vec<(u64, Probe)> {
        self.lock().probes.get(from..).unwrap_or_default().to_vec()
    }

    /// Code so far that uses what nobody wrote on purpose, from the given one on.
    pub fn excused(&self, from: usize) -> Vec<std::ops::Range<u64>> {
        self.lock().excused.get(from..).unwrap_or_default().to_vec()
    }

    /// The mappings so far, from the given one on.
    pub fn maps(&self, from: usize) -> Vec<ModuleMap> {
        self.lock().maps.get(from..).unwrap_or_default().to_vec()
    }

    /// Finds the variables in the frames of functions.
    pub fn frames(&self) -> Finder {
        let modules = self.clone();
        Arc::new(move |pc| modules.lock().frame(pc))
    }

    /// The program, to read names and lines from.
    pub fn program(&self) -> Program {
        let mut modules: Vec<LoadedModule> = Vec::new();
        for map in &self.lock().maps {
            let loaded = loaded(map).map(|(loaded, _)| loaded);
            modules.extend(loaded.filter(|new| modules.iter().all(|old| old.range != new.range)));
        }
        Program::open(modules, &DebugFiles::default())
    }
}

impl ModuleFacts {
    fn frame(&mut self, pc: u64) -> Option<Function> {
        let (_, bias, path) = self.code.iter().find(|(code, ..)| code.contains(&pc))?;
        let open = || Module::open(Path::new(path), &DebugFiles::default()).ok().map(Arc::new);
        let module = self.opened.entry(path.clone()).or_insert_with(open).clone()?;
        let layout = module.frame_layout(FileAddress(pc.wrapping_sub(*bias)))?;
        let at = |address: u64| address.wrapping_add(*bias);
        let local = |local: &FrameLocal| Local {
            offset: local.offset,
            size: local.size,
            array: local.array,
            scope: local.scope.iter().map(|(start, end)| at(*start)..at(*end)).collect(),
            left: local.left.iter().map(|(start, end)| at(*start)..at(*end)).collect(),
        };
        Some(Function {
            code: at(layout.code.start)..at(layout.code.end),
            optimised: layout.optimised,
            locals: layout.locals.iter().map(local).collect(),
        })
    }
}

impl Contents {
    /// What is wanted of a file.
    fn of(path: &str, wanted: &Wanted) -> Self {
        let Ok(image) = Image::open(Path::new(path)) else {
            return Self::default();
        };
        let table = SymbolTable::of(&image, None);
        let (names, called) = (&wanted.names, &wanted.called);
        let is_library = is_c_library(path);
        let mut functions = Vec::new();
        for symbol in table.iter() {
            let name = match symbol.kind {
                SymbolKind::Stub => {
                    symbol.name.strip_suffix("@plt").filter(|name| has(called, name))
                }
                SymbolKind::Function => {
                    let meant =
                        has(names, symbol.name) && !(is_library && has(called, symbol.name));
                    meant.then_some(symbol.name)
                }
                _ => None,
            };
            functions.extend(name.map(|name| (name.to_owned(), symbol.address.0)));
        }
        let is_variable = |kind, size| wanted.variables && kind == SymbolKind::Object && size > 0;
        let variables = table.iter().filter(|symbol| is_variable(symbol.kind, symbol.size));
        let variables = variables.map(|symbol| (symbol.address.0, symbol.size)).collect();
        // A program that is linked statically brings the C library along.
        let has_contracts = wanted.contracts && (is_library || is_static(&image));
        let contracts = match has_contracts {
            true => implementations::of(&image, &table),
            false => Vec::new(),
        };
        let thread_locals =
            if wanted.variables { thread_locals(&image, &table) } else { Vec::new() };
        let (excused, go) = (excused(&table), has_go(&image));
        let probes = if wanted.variables { probes(path, &image, &table, go) } else { Vec::new() };
        Self { functions, variables, contracts, thread_locals, probes, excused, go }
    }
}

/// Where registers tell how much room is made on the stack, and which blocks are stored.
fn probes(path: &str, image: &Image, table: &SymbolTable, go: bool) -> Vec<(u64, Probe)> {
    let allocators = Allocators::default();
    let stores = |(_, allocator): &(&str, Allocator)| matches!(allocator.role, Role::AllocateTo(_));
    let names: Vec<&str> = allocators.iter().filter(stores).map(|(name, _)| name).collect();
    let mut all = rooms::stores(image, table, &names);
    if !go && !is_runtime(path) {
        all.extend(rooms::of(image, table));
    }
    all
}

/// A program's variables of threads: how far below the thread pointer each begins, and its bytes.
fn thread_locals(image: &Image, table: &SymbolTable) -> Vec<(u64, u64)> {
    // Where those of shared libraries are only the loader knows.
    let program = image.has(".interp") || image.dynamic().is_none();
    let all = image.tls().filter(|_| program);
    let Some(size) = all.and_then(|tls| tls.size.checked_next_multiple_of(tls.align)) else {
        return Vec::new();
    };
    let own = table.iter().filter(|s| s.kind == SymbolKind::ThreadLocal && s.size > 0);
    own.filter_map(|symbol| Some((size.checked_sub(symbol.address.0)?, symbol.size))).collect()
}

/// Functions for which a program brings others to be used under valgrind: they compare words of which only
/// a part was written, and know what they do.
fn excused(table: &SymbolTable) -> Vec<std::ops::Range<u64>> {
    let replaced = |name: &str| {
        // Five digits, then a library and a function as they are.
        let (_, name) = name.strip_prefix("_vgr")?.split_once("ZU_")?;
        name.split_once('_').map(|(_, function)| function.to_owned())
    };
    let names: Vec<String> = table.iter().filter_map(|symbol| replaced(symbol.name)).collect();
    let is_replaced = |name: &str| !names.is_empty() && has(&names, name);
    let functions = table.iter().filter(|symbol| is_replaced(symbol.name));
    let code = |at: u64, size: u64| at..at.saturating_add(size.max(1));
    functions.map(|symbol| code(symbol.address.0, symbol.size)).collect()
}

/// Whether a file is a program that needs no loader.
fn is_static(image: &Image) -> bool {
    !image.has(".interp") && image.entry().0 != 0
}

/// Whether a file is a Go program's, whose runtime moves stacks about and looks through all of them.
pub fn is_go(path: &str) -> bool {
    Image::open(Path::new(path)).is_ok_and(|image| has_go(&image))
}

fn has_go(image: &Image) -> bool {
    image.has(".gopclntab")
}

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|known| known == name)
}

/// Where a file is loaded, and where its code is, from one of its pieces; nothing if that piece is
/// not the one with the code.
fn loaded(map: &ModuleMap) -> Option<(LoadedModule, std::ops::Range<u64>)> {
    let path = PathBuf::from(&map.path);
    let image = Image::open(&path).ok()?;
    let segments = image.segments();
    let code = segments.iter().find(|segment| segment.executable)?;
    // The loader maps whole pages.
    (code.offset() & !0xfff == map.offset).then_some(())?;
    let lowest = segments.iter().map(|segment| segment.address.0).min()? & !0xfff;
    let highest = segments.iter().map(|s| s.address.0.saturating_add(s.size)).max()?;
    let bias = map.start.wrapping_sub(code.address.0 & !0xfff);
    let at = |address: u64| Address(bias.wrapping_add(address));
    let range = Range { start: at(lowest), end: at(highest) };
    let end = bias.wrapping_add(code.address.0).wrapping_add(code.size).min(map.end);
    Some((LoadedModule { path, bias, range }, map.start..end))
}

/// Whether a file is part of a language's runtime, whose variables are nobody's concern.
fn is_runtime(path: &str) -> bool {
    ModuleKind::of(path).is_runtime()
}

/// Whether a file is the C library or its loader, whose vector code reads past the ends of strings
/// on purpose.
pub fn is_c_library(path: &str) -> bool {
    ModuleKind::of(path).is_c_library()
}
