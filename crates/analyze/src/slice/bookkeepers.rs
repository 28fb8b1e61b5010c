//! Code that keeps lists of its own: the allocator of the C library.
//!
//! A block comes from a list of blocks that others gave back, or from the end of the heap, which whoever
//! allocated last has moved. That is true and nobody's business: the pointer comes from the call.

use base::Address;
use symbols::Program;

/// Functions of the allocator, without leading underscores.
const FUNCTIONS: [&str; 32] = [
    "aligned_alloc",
    "alloc_perturb",
    "arena_get2",
    "brk",
    "calloc",
    "free",
    "glibc_morecore",
    "int_free",
    "int_malloc",
    "int_memalign",
    "int_realloc",
    "libc_calloc",
    "libc_free",
    "libc_malloc",
    "libc_memalign",
    "libc_realloc",
    "malloc",
    "malloc_consolidate",
    "malloc_hook_ini",
    "memalign",
    "mid_memalign",
    "posix_memalign",
    "ptmalloc_init",
    "realloc",
    "sbrk",
    "sysmalloc",
    "systrim",
    "tcache_get",
    "tcache_init",
    "tcache_key_initialize",
    "tcache_put",
    "unlink_chunk",
];

/// Whether the code at an address belongs to the allocator of the C library.
#[must_use]
pub fn is_bookkeeper(program: &Program, pc: u64) -> bool {
    let Some((name, _)) = program.symbol_at(Address(pc)) else { return false };
    let name = symbols::plain_name(&name);
    // A part that the compiler has moved, or a version.
    let name = name.split(['.', '@']).next().unwrap_or(name);
    FUNCTIONS.binary_search(&name).is_ok() && !super::view::has_source(program, pc)
}

#[cfg(test)]
mod tests {
    use super::FUNCTIONS;

    #[test]
    fn functions_can_be_found_by_name() {
        assert!(FUNCTIONS.is_sorted());
    }
}
