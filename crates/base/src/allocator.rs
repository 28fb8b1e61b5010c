//! The functions that allocate and free, what each of their arguments means, and to which family
//! they belong. Programs with allocators of their own name them in a small file.
//!
//! Whoever follows a heap uses this one table: the runner, which watches allocators at work, and the
//! analyses, which hear of their calls afterwards.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a function does to the heap. Arguments are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Returns a block of so many bytes: an argument, times another one.
    Allocate(u8, Option<u8>),
    /// Returns a block of this many bytes.
    AllocateFixed(u64),
    /// Returns a block as `Allocate` does, with the contents of the block that its first argument
    /// points to, which is freed.
    Resize(u8, Option<u8>),
    /// Stores the address of a block of so many bytes where its first argument points; returns 0 if
    /// it could.
    AllocateTo(u8),
    /// Frees its first argument.
    Free,
    /// Returns how much of a block may be used: all of that belongs to it from then on.
    Measure,
    /// Goes through the heap, and has to do with no block of the program's.
    Tend,
}

/// A family of functions: what one of them allocates only another of them may free.
pub type Family = u8;

/// `malloc` and `free`.
pub const FAMILY_MALLOC: Family = 1;
/// `new` and `delete`.
pub const FAMILY_NEW: Family = 2;
/// `new[]` and `delete[]`.
pub const FAMILY_NEW_ARRAY: Family = 3;

/// A function of an allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocator {
    /// What it does.
    pub role: Role,
    /// Its family.
    pub family: Family,
    /// Whether it hands out blocks of zeros.
    pub zeroed: bool,
}

/// What a family is called.
#[must_use]
pub fn family_name(family: Family) -> &'static str {
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
    by_name: BTreeMap<String, Allocator>,
    families: Family,
}

impl Default for Allocators {
    /// Those of C and C++.
    fn default() -> Self {
        let mut all = Self { by_name: BTreeMap::new(), families: FAMILY_NEW_ARRAY };
        let plain = Role::Allocate(0, None);
        let aligned = Role::Allocate(1, None);
        let c = [
            ("malloc", plain),
            ("valloc", plain),
            ("pvalloc", plain),
            ("calloc", Role::Allocate(1, Some(0))),
            ("aligned_alloc", aligned),
            ("memalign", aligned),
            ("posix_memalign", Role::AllocateTo(2)),
            ("realloc", Role::Resize(1, None)),
            ("reallocarray", Role::Resize(2, Some(1))),
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
    fn add(&mut self, name: &str, role: Role, family: Family) {
        let zeroed = name == "calloc";
        self.by_name.insert(name.to_owned(), Allocator { role, family, zeroed });
    }

    /// The function of a name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<Allocator> {
        self.by_name.get(name).copied()
    }

    /// How many families there are.
    #[must_use]
    pub fn families(&self) -> Family {
        self.families
    }

    /// All functions with their names, in the order of those.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Allocator)> {
        self.by_name.iter().map(|(name, allocator)| (name.as_str(), *allocator))
    }

    /// All names, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.by_name.keys().cloned().collect()
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
            let Some(family) = self.families.checked_add(1) else {
                return Err(format!(
                    "line {number}: there are more than {} families of allocators",
                    Family::MAX
                ));
            };
            self.families = family;
            self.add(allocate, role, self.families);
            self.add(free, Role::Free, self.families);
        }
        Ok(())
    }
}

/// What a function does whose size is given by a word.
fn sized(word: &str) -> Option<Role> {
    if let Some(bytes) = word.strip_prefix('=') {
        return bytes.parse().ok().map(Role::AllocateFixed);
    }
    let argument: u8 = word.parse().ok().filter(|argument| (1..=6).contains(argument))?;
    Some(Role::Allocate(argument - 1, None))
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
        assert_eq!(pool.role, Role::Allocate(1, None));
        assert_eq!(all.named("_ZdaPvm").unwrap().family, FAMILY_NEW_ARRAY);
        all.read("node =64 gone").expect("in order");
        assert_eq!(all.named("node").unwrap().role, Role::AllocateFixed(64));
        assert!(all.read("node =x gone").unwrap_err().contains("`=x`"));
        assert!(all.read("a b c d").unwrap_err().contains("line 1"));
        assert!(all.read("\na 9 c").unwrap_err().contains("line 2"));
    }

    #[test]
    fn families_that_cannot_be_told_apart_are_refused() {
        let lines = |count: u32| -> String {
            (0..count).map(|number| format!("get{number} put{number}\n")).collect()
        };
        let mut all = Allocators::default();
        all.read(&lines(252)).expect("so many have numbers");
        assert_eq!(all.named("get251").unwrap().family, Family::MAX);
        let refused = Allocators::default().read(&lines(253)).unwrap_err();
        assert!(refused.contains("line 253") && refused.contains("255"), "{refused}");
    }

    #[test]
    fn blocks_of_zeros_come_from_calloc_alone() {
        let all = Allocators::default();
        let zeroed: Vec<&str> =
            all.iter().filter(|(_, it)| it.zeroed).map(|(name, _)| name).collect();
        assert_eq!(zeroed, ["calloc"]);
    }
}
