//! The functions that allocate and free, what each of their arguments means, and to which family
//! they belong. Programs with allocators of their own name them in a small file.

use rustc_hash::FxHashMap;

/// What a function does to the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Allocates `argument` bytes.
    Allocate {
        /// Which argument is the size.
        size: u8,
        /// Which argument the size is multiplied with.
        count: Option<u8>,
        /// Whether the bytes are zero.
        zeroed: bool,
    },
    /// Allocates always the same number of bytes.
    AllocateFixed {
        /// How many.
        bytes: u64,
    },
    /// Frees its first argument.
    Free,
    /// Frees its first argument and allocates, keeping the contents.
    Resize {
        /// Which argument is the size.
        size: u8,
        /// Which argument the size is multiplied with.
        count: Option<u8>,
    },
    /// Stores the block's address where its first argument points; returns 0 if it could.
    AllocateTo {
        /// Which argument is the size.
        size: u8,
    },
    /// Tells how much of a block may be used: all of that belongs to it from then on.
    Measure,
    /// Goes through the heap, and has to do with no block of the program's.
    Tend,
}

/// The families: what one of them allocates only it may free.
pub const FAMILY_MALLOC: i64 = 1;
/// `new` and `delete`.
pub const FAMILY_NEW: i64 = 2;
/// `new[]` and `delete[]`.
pub const FAMILY_NEW_ARRAY: i64 = 3;

/// A function of an allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocator {
    /// What it does.
    pub role: Role,
    /// Its family.
    pub family: i64,
}

/// What a family is called.
#[must_use]
pub fn family_name(family: i64) -> &'static str {
    match family {
        FAMILY_MALLOC => "malloc",
        FAMILY_NEW => "new",
        FAMILY_NEW_ARRAY => "new[]",
        _ => "an allocator of the program's",
    }
}

/// The functions of allocators by name.
#[derive(Clone, Debug)]
pub struct Allocators {
    by_name: FxHashMap<String, Allocator>,
    families: i64,
}

impl Default for Allocators {
    /// Those of C and C++.
    fn default() -> Self {
        let mut all = Self { by_name: FxHashMap::default(), families: FAMILY_NEW_ARRAY };
        let plain = Role::Allocate { size: 0, count: None, zeroed: false };
        let aligned = Role::Allocate { size: 1, count: None, zeroed: false };
        let cleared = Role::Allocate { size: 1, count: Some(0), zeroed: true };
        let c = [
            ("malloc", plain),
            ("valloc", plain),
            ("pvalloc", plain),
            ("calloc", cleared),
            ("aligned_alloc", aligned),
            ("memalign", aligned),
            ("posix_memalign", Role::AllocateTo { size: 2 }),
            ("realloc", Role::Resize { size: 1, count: None }),
            ("reallocarray", Role::Resize { size: 2, count: Some(1) }),
            ("free", Role::Free),
            ("cfree", Role::Free),
            ("malloc_usable_size", Role::Measure),
            ("malloc_trim", Role::Tend),
            ("malloc_info", Role::Tend),
            ("malloc_stats", Role::Tend),
            ("mallinfo", Role::Tend),
            ("mallinfo2", Role::Tend),
            ("mallopt", Role::Tend),
        ];
        for (name, role) in c {
            all.add(name, role, FAMILY_MALLOC);
        }
        for (word, role) in [("n", plain), ("d", Role::Free)] {
            let (one, many) = if word == "n" { ("_Znwm", "_Znam") } else { ("_ZdlPv", "_ZdaPv") };
            let endings: &[&str] = if word == "n" { &NEW_ENDINGS } else { &DELETE_ENDINGS };
            for ending in endings {
                all.add(&format!("{one}{ending}"), role, FAMILY_NEW);
                all.add(&format!("{many}{ending}"), role, FAMILY_NEW_ARRAY);
            }
        }
        all
    }
}

const NEW_ENDINGS: [&str; 4] =
    ["", "RKSt9nothrow_t", "St11align_val_t", "St11align_val_tRKSt9nothrow_t"];
const DELETE_ENDINGS: [&str; 6] = [
    "",
    "m",
    "RKSt9nothrow_t",
    "St11align_val_t",
    "mSt11align_val_t",
    "St11align_val_tRKSt9nothrow_t",
];

impl Allocators {
    fn add(&mut self, name: &str, role: Role, family: i64) {
        self.by_name.insert(name.to_owned(), Allocator { role, family });
    }

    /// The function of a name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<Allocator> {
        self.by_name.get(name).copied()
    }

    /// How many families there are.
    #[must_use]
    pub fn families(&self) -> i64 {
        self.families
    }

    /// All names, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.by_name.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Adds the functions of a file: lines `ALLOCATE SIZE FREE`. The size is the number of the
    /// argument that it is, from 1, or `=` and the bytes that every block has; 1 if left out. Lines
    /// that begin with `#` are comments. An error names the line.
    pub fn read(&mut self, text: &str) -> Result<(), String> {
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let (allocate, size, free) = match words.as_slice() {
                [] => continue,
                [allocate, free] => (*allocate, "1", *free),
                [allocate, size, free] => (*allocate, *size, *free),
                _ => {
                    return Err(format!(
                        "line {number}: expected `ALLOCATE [SIZE] FREE`, as in `pool_get 2 \
                         pool_put` or `node_new =64 node_delete`"
                    ));
                }
            };
            let Some(role) = sized(size) else {
                return Err(format!(
                    "line {number}: `{size}` is neither the number of an argument, 1 to 6, nor a \
                     number of bytes such as `=64`"
                ));
            };
            self.families += 1;
            self.add(allocate, role, self.families);
            self.add(free, Role::Free, self.families);
        }
        Ok(())
    }
}

/// What a function does whose size is given by a word.
fn sized(word: &str) -> Option<Role> {
    if let Some(bytes) = word.strip_prefix('=') {
        return bytes.parse().ok().map(|bytes| Role::AllocateFixed { bytes });
    }
    let argument: u8 = word.parse().ok().filter(|argument| (1..=6).contains(argument))?;
    Some(Role::Allocate { size: argument - 1, count: None, zeroed: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_allocators_form_families() {
        let mut all = Allocators::default();
        all.read("# pools\npool_get 2 pool_put\nget put # and these\n").expect("in order");
        let [pool, put, get] = ["pool_get", "pool_put", "get"].map(|name| all.named(name).unwrap());
        assert_eq!(pool.family, put.family);
        assert_ne!(pool.family, get.family);
        assert_eq!(pool.role, Role::Allocate { size: 1, count: None, zeroed: false });
        assert_eq!(all.named("_ZdaPvm").unwrap().family, FAMILY_NEW_ARRAY);
        all.read("node =64 gone").expect("in order");
        assert_eq!(all.named("node").unwrap().role, Role::AllocateFixed { bytes: 64 });
        assert!(all.read("node =x gone").unwrap_err().contains("`=x`"));
        assert!(all.read("a b c d").unwrap_err().contains("line 1"));
        assert!(all.read("\na 9 c").unwrap_err().contains("line 2"));
    }
}
