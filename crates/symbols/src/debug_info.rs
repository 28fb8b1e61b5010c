//! The DWARF of one module: its sections, the alternate file (dwz) and split units, loaded when
//! first needed.

use crate::cache::Cache;
use crate::debug_files::DebugFiles;
use crate::image::Image;
use crate::lines::LineTable;
use crate::names::Names;
use crate::prefixes::Prefixes;
use crate::scope::{Functions, Scope};
use crate::types::Type;
use crate::units::{EntryId, UnitId, Units};
use gimli::{DwoId, LittleEndian, Reader as _};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Reads a section; shared ownership lets units and caches live as long as they like.
pub(crate) type Reader = gimli::EndianArcSlice<LittleEndian>;
pub(crate) type Dwarf = gimli::Dwarf<Reader>;
pub(crate) type Unit = gimli::Unit<Reader>;
pub(crate) type Entry = gimli::DebuggingInformationEntry<Reader>;
pub(crate) type Attribute = gimli::AttributeValue<Reader>;

/// The debug information of one module.
pub(crate) struct DebugInfo {
    program: PathBuf,
    debug_path: PathBuf,
    pub dwarf: Arc<Dwarf>,
    pub units: Units,
    pub caches: Caches,
    package: OnceLock<Option<gimli::DwarfPackage<Reader>>>,
    split: Mutex<HashMap<u64, Option<Arc<Dwarf>>>>,
}

/// What has been parsed so far.
#[derive(Default)]
pub(crate) struct Caches {
    pub lines: Cache<UnitId, LineTable>,
    pub functions: Cache<UnitId, Functions>,
    pub scopes: Cache<EntryId, Scope>,
    pub types: Cache<EntryId, Type>,
    pub prefixes: Cache<UnitId, Prefixes>,
    pub code: OnceLock<Vec<CodeRange>>,
    pub names: OnceLock<Names>,
}

/// A stretch of code and the unit it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeRange {
    pub start: u64,
    pub end: u64,
    pub unit: u32,
}

impl DebugInfo {
    /// The debug information in `image`, the file itself or its separate debug file; `None` if
    /// it has none.
    pub fn load(program: &Path, image: &Image, files: &DebugFiles) -> Option<Self> {
        if !image.has(".debug_info") {
            return None;
        }
        let mut dwarf = load_sections(image, false);
        dwarf.sup = files.alternate_of(image).map(|image| Arc::new(load_sections(&image, false)));
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        let dwarf = Arc::new(dwarf);
        let units = Units::of(&dwarf);
        Some(Self {
            program: program.into(),
            debug_path: image.path().into(),
            dwarf,
            units,
            caches: Caches::default(),
            package: OnceLock::new(),
            split: Mutex::default(),
        })
    }

    /// The split unit with that id; `None` if its file is missing.
    pub fn split(&self, id: DwoId, folder: Option<&str>, name: Option<&str>) -> Option<Arc<Dwarf>> {
        let mut split = self.split.lock().unwrap_or_else(PoisonError::into_inner);
        let load = || self.load_split(id, folder, name);
        split.entry(id.0).or_insert_with(load).clone()
    }

    fn load_split(
        &self,
        id: DwoId,
        folder: Option<&str>,
        name: Option<&str>,
    ) -> Option<Arc<Dwarf>> {
        if let Some(package) = self.package()
            && let Ok(Some(dwarf)) = package.find_cu(id, &self.dwarf)
        {
            return Some(Arc::new(dwarf));
        }
        let image = DebugFiles::split_unit(&self.program, folder.map(Path::new), Path::new(name?))?;
        let mut dwarf = load_sections(&image, true);
        let header = dwarf.units().find_map(|header| {
            let unit = dwarf.unit(header.ok()?).ok()?;
            (unit.dwo_id == Some(id)).then_some(())
        });
        header?;
        dwarf.make_dwo(&self.dwarf);
        Some(Arc::new(dwarf))
    }

    pub fn package(&self) -> Option<&gimli::DwarfPackage<Reader>> {
        self.package
            .get_or_init(|| {
                let image = DebugFiles::package_of(&self.program)
                    .or_else(|| DebugFiles::package_of(&self.debug_path))?;
                let section = |id: gimli::SectionId| -> Result<Reader, gimli::Error> {
                    Ok(section(&image, id.dwo_name()))
                };
                gimli::DwarfPackage::load(section, reader(Arc::from([]))).ok()
            })
            .as_ref()
    }
}

/// The text that a reader is at.
pub(crate) fn text(reader: &Reader) -> Option<String> {
    Some(reader.to_string_lossy().ok()?.into_owned())
}

pub(crate) fn reader(bytes: crate::image::Bytes) -> Reader {
    Reader::new(bytes, LittleEndian)
}

fn section(image: &Image, name: Option<&str>) -> Reader {
    reader(name.and_then(|name| image.contents(name)).unwrap_or_else(|| Arc::from([])))
}

fn load_sections(image: &Image, split: bool) -> Dwarf {
    let load = |id: gimli::SectionId| -> Result<Reader, std::convert::Infallible> {
        let name = if split { id.dwo_name() } else { Some(id.name()) };
        Ok(section(image, name))
    };
    match Dwarf::load(load) {
        Ok(dwarf) => dwarf,
        Err(never) => match never {},
    }
}
