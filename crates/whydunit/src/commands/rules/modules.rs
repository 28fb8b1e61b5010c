//! The program's files as it maps them: where functions are that rules name, and what to read
//! lines and names from afterwards.

use base::{Address, Range};
use engine::host::Resolve;
use engine::report::ModuleMap;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use symbols::symbol_table::{SymbolKind, SymbolTable};
use symbols::{DebugFiles, Image, LoadedModule, Program};

/// What is known of the program's files, shared with whoever is asked for functions.
#[derive(Clone, Default)]
pub struct Modules(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    maps: Vec<ModuleMap>,
    functions: Vec<(u64, String)>,
}

impl Modules {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers for functions, and remembers what was mapped. A function that rules name is found
    /// where it is called too: the C library has several implementations of `memcpy`, and the same
    /// ones for `memmove`, so only the stub that a caller goes through tells which it means.
    pub fn resolver(&self, called: Vec<String>) -> Resolve {
        let this = self.clone();
        let files: Mutex<BTreeMap<String, Vec<(String, u64)>>> = Mutex::default();
        Resolve(Arc::new(move |map: &ModuleMap, names: &[String]| {
            let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
            let found =
                files.entry(map.path.clone()).or_insert_with(|| named(&map.path, names, &called));
            let mut known = this.lock();
            known.maps.push(map.clone());
            let Some(loaded) = loaded(map) else { return Vec::new() };
            let mut addresses = Vec::new();
            for (name, address) in found.iter() {
                let address = address.wrapping_add(loaded.bias);
                if (map.start..map.end).contains(&address) {
                    known.functions.push((address, name.clone()));
                    addresses.push(address);
                }
            }
            addresses.sort_unstable();
            addresses.dedup();
            addresses
        }))
    }

    /// Functions found so far, from the given one on.
    pub fn functions(&self, from: usize) -> Vec<(u64, String)> {
        self.lock().functions.get(from..).unwrap_or_default().to_vec()
    }

    /// The mappings so far, from the given one on.
    pub fn maps(&self, from: usize) -> Vec<ModuleMap> {
        self.lock().maps.get(from..).unwrap_or_default().to_vec()
    }

    /// The program, to read names and lines from.
    pub fn program(&self) -> Program {
        let mut modules: Vec<LoadedModule> = Vec::new();
        for map in &self.lock().maps {
            let loaded = loaded(map);
            modules.extend(loaded.filter(|new| modules.iter().all(|old| old.range != new.range)));
        }
        Program::open(modules, &DebugFiles::default())
    }
}

/// The functions of these names in a file, and the stubs of those that are called, at addresses of
/// the file.
fn named(path: &str, names: &[String], called: &[String]) -> Vec<(String, u64)> {
    let Ok(image) = Image::open(Path::new(path)) else { return Vec::new() };
    let is_library = is_c_library(path);
    let mut found = Vec::new();
    for symbol in SymbolTable::of(&image, None).iter() {
        let name = match symbol.kind {
            SymbolKind::Stub => symbol.name.strip_suffix("@plt").filter(|name| has(called, name)),
            SymbolKind::Function => {
                let wanted = has(names, symbol.name) && !(is_library && has(called, symbol.name));
                wanted.then_some(symbol.name)
            }
            _ => None,
        };
        found.extend(name.map(|name| (name.to_owned(), symbol.address.0)));
    }
    found
}

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|known| known == name)
}

/// Where a file is loaded, from where one of its pieces with code is.
fn loaded(map: &ModuleMap) -> Option<LoadedModule> {
    let path = PathBuf::from(&map.path);
    let image = Image::open(&path).ok()?;
    let segments = image.segments();
    let executable = segments.iter().find(|segment| segment.executable)?;
    let lowest = segments.iter().map(|segment| segment.address.0).min()? & !0xfff;
    let highest = segments.iter().map(|s| s.address.0.saturating_add(s.size)).max()?;
    // The loader maps whole pages.
    let bias = map.start.wrapping_sub(executable.address.0 & !0xfff);
    let range = Range {
        start: Address(bias.wrapping_add(lowest)),
        end: Address(bias.wrapping_add(highest)),
    };
    Some(LoadedModule { path, bias, range })
}

/// Whether a file is the C library or its loader, whose vector code reads past the ends of strings
/// on purpose.
pub fn is_c_library(path: &str) -> bool {
    let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    ["libc.so", "libc-", "ld-linux", "ld-", "libc.musl"].iter().any(|start| name.starts_with(start))
}
