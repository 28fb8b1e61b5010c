//! The program's files as it maps them: where functions are that rules name, and what to read
//! lines and names from afterwards.

use base::{Address, Range};
use engine::host::Resolve;
use engine::report::ModuleMap;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

    /// Answers for functions, and remembers what was mapped.
    pub fn resolver(&self) -> Resolve {
        let this = self.clone();
        let files: Mutex<BTreeMap<String, Vec<(String, u64)>>> = Mutex::default();
        Resolve(Arc::new(move |map: &ModuleMap, names: &[String]| {
            let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
            let found = files
                .entry(map.path.clone())
                .or_insert_with(|| super::super::run::functions::functions(&map.path, names));
            let end = map.offset + (map.end - map.start);
            let mut known = this.lock();
            known.maps.push(map.clone());
            let mut addresses = Vec::new();
            for (name, offset) in found.iter().filter(|(_, at)| (map.offset..end).contains(at)) {
                let address = map.start + (offset - map.offset);
                known.functions.push((address, name.clone()));
                addresses.push(address);
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
