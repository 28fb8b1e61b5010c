//! Functions and objects by the ELF symbol tables: all there is when debug information is absent,
//! and the quick way to a name when it is there.

use crate::address::FileAddress;
use crate::demangle::demangle;
use crate::image::{Elf, Image};
use crate::plt;
use object::read::elf::Sym;
use object::{LittleEndian, Object, ObjectSymbol, elf};
use std::sync::Arc;

/// What a symbol stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum SymbolKind {
    /// Code.
    Function,
    /// A variable with static storage.
    Object,
    /// A thread-local variable: its address is an offset into the module's template.
    ThreadLocal,
    /// A stub that jumps to a function of another module (`puts@plt`).
    Stub,
}

/// A named piece of a file.
#[derive(Clone, Copy, Debug)]
pub struct Symbol<'a> {
    /// The name as linked; see [`Symbol::demangled`].
    pub name: &'a str,
    /// What it is.
    pub kind: SymbolKind,
    /// Where it starts.
    pub address: FileAddress,
    /// Its size in bytes; 0 when the table does not say.
    pub size: u64,
    /// Whether other modules can refer to it.
    pub global: bool,
    /// Whether it is a function that chooses the one of that name (an IFUNC).
    pub chooses: bool,
}

impl Symbol<'_> {
    /// The name as the programmer wrote it.
    #[must_use]
    pub fn demangled(&self) -> String {
        demangle(self.name)
    }
}

/// All symbols of a module with an address in it, sorted by address.
#[derive(Default)]
pub struct SymbolTable {
    names: String,
    symbols: Vec<Row>,
    thread_locals: Vec<Row>,
}

#[derive(Clone, Copy)]
struct Row {
    address: u64,
    size: u64,
    kind: SymbolKind,
    global: bool,
    chooses: bool,
    name: (u32, u32),
}

impl SymbolTable {
    /// The symbols of `image`, of its separate debug file and of its compressed mini debug file.
    #[must_use]
    pub fn of(image: &Image, debug: Option<&Image>) -> Self {
        let mut table = Self::default();
        let mini = mini_debug_image(image);
        for image in [Some(image), debug, mini.as_ref()].into_iter().flatten() {
            image.with_elf(|file| table.add_symbols(file));
        }
        for (address, size, name) in plt::stubs(image) {
            table.add(&name, Row { address, size, kind: SymbolKind::Stub, ..Row::EMPTY });
        }
        table.symbols.sort_by_key(|row| (row.address, row.rank()));
        table.symbols.dedup_by(|later, first| {
            later.address == first.address
                && later.kind == first.kind
                && table.names.get(later.range()) == table.names.get(first.range())
        });
        table
    }

    /// The function or stub that `address` is in.
    #[must_use]
    pub fn code_at(&self, address: FileAddress) -> Option<Symbol<'_>> {
        self.at(address, |kind| matches!(kind, SymbolKind::Function | SymbolKind::Stub))
    }

    /// The object that `address` is in.
    #[must_use]
    pub fn object_at(&self, address: FileAddress) -> Option<Symbol<'_>> {
        self.at(address, |kind| kind == SymbolKind::Object)
    }

    /// Every symbol, by address; thread-locals last.
    pub fn iter(&self) -> impl Iterator<Item = Symbol<'_>> {
        self.symbols.iter().chain(&self.thread_locals).map(|row| self.symbol(row))
    }

    /// The objects with static storage of that name, as linked or demangled.
    pub fn objects_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Symbol<'a>> {
        let objects = self.iter().filter(|symbol| symbol.kind == SymbolKind::Object);
        objects.filter(move |symbol| {
            symbol.name == name || (symbol.name.starts_with('_') && symbol.demangled() == name)
        })
    }

    fn at(&self, address: FileAddress, wanted: impl Fn(SymbolKind) -> bool) -> Option<Symbol<'_>> {
        // A row far below can still cover the address (a large array before small ones), but
        // only a few rows are worth a look: tables are flat in practice.
        const LOOK_BACK: usize = 64;
        let end = self.symbols.partition_point(|row| row.address <= address.0);
        let mut unsized_start = None;
        for row in self.symbols[..end].iter().rev().take(LOOK_BACK).filter(|row| wanted(row.kind)) {
            if address.0 - row.address < row.size {
                let first =
                    self.symbols[..end].partition_point(|other| other.address < row.address);
                let best = self.symbols[first..end]
                    .iter()
                    .find(|r| wanted(r.kind) && address.0 - r.address < r.size);
                return best.map(|row| self.symbol(row));
            }
            if row.size == 0 && unsized_start.is_none() {
                unsized_start = Some(row);
            }
        }
        // Hand-written assembly often states no size: it reaches up to the next symbol.
        let row = unsized_start.filter(|row| {
            self.symbols[..end].last().is_some_and(|last| last.address == row.address)
        })?;
        Some(self.symbol(row))
    }

    fn symbol(&self, row: &Row) -> Symbol<'_> {
        Symbol {
            name: self.names.get(row.range()).unwrap_or_default(),
            kind: row.kind,
            address: FileAddress(row.address),
            size: row.size,
            global: row.global,
            chooses: row.chooses,
        }
    }

    fn add_symbols(&mut self, file: &Elf<'_>) {
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let entry = symbol.elf_symbol();
            let kind = match entry.st_type() {
                elf::STT_FUNC | elf::STT_GNU_IFUNC => SymbolKind::Function,
                elf::STT_OBJECT => SymbolKind::Object,
                elf::STT_TLS => SymbolKind::ThreadLocal,
                _ => continue,
            };
            let Ok(name) = symbol.name() else { continue };
            if symbol.is_undefined() || name.is_empty() {
                continue;
            }
            let (address, size) = (symbol.address(), entry.st_size(LittleEndian));
            let global = symbol.is_global();
            // `memcpy@@GLIBC_2.14` in a symtab is `memcpy` to a reader.
            let name = name.split('@').next().unwrap_or(name);
            let chooses = entry.st_type() == elf::STT_GNU_IFUNC;
            self.add(name, Row { address, size, kind, global, chooses, ..Row::EMPTY });
        }
    }

    fn add(&mut self, name: &str, row: Row) {
        let (Ok(start), Ok(length)) = (u32::try_from(self.names.len()), u32::try_from(name.len()))
        else {
            return;
        };
        self.names.push_str(name);
        let row = Row { name: (start, length), ..row };
        match row.kind {
            SymbolKind::ThreadLocal => self.thread_locals.push(row),
            _ => self.symbols.push(row),
        }
    }
}

impl Row {
    const EMPTY: Self = Self {
        address: 0,
        size: 0,
        kind: SymbolKind::Function,
        global: false,
        chooses: false,
        name: (0, 0),
    };

    fn range(&self) -> std::ops::Range<usize> {
        let start = self.name.0 as usize;
        start..start.saturating_add(self.name.1 as usize)
    }

    /// Of several names for one address the first in this order is shown: the linker's choice of
    /// a public name with a size.
    fn rank(&self) -> (bool, bool, SymbolKind, u32) {
        (self.size == 0, !self.global, self.kind, self.name.0)
    }
}

/// The symbol table that some distributions keep, xz-compressed, in `.gnu_debugdata`.
fn mini_debug_image(image: &Image) -> Option<Image> {
    /// The largest such table that is believed; real ones are a few megabytes.
    const LARGEST: usize = 1 << 28;
    let packed = image.contents(".gnu_debugdata")?;
    let mut unpacked = Bounded { bytes: Vec::new(), limit: LARGEST };
    lzma_rs::xz_decompress(&mut &packed[..], &mut unpacked).ok()?;
    Image::from_bytes(image.path(), Arc::from(unpacked.bytes)).ok()
}

/// A buffer that refuses to grow without end.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(std::io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
