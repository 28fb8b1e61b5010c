//! The address space. That a mapping has new contents is not a write: [`super::kind`] tells the calls
//! that replay must make again.

use super::Known;
use super::call::Call;
use super::row::Row;
use base::system_call::number as n;

pub const ROWS: &[(u64, Row)] = &[
    (n::mincore, Row::after(residency)),
    (n::get_mempolicy, Row::after(policy)),
    (n::move_pages, Row::after(moved)),
    (n::userfaultfd, Row::Unknown("page faults are answered by another thread or process")),
];

pub const NOTHING: &[u64] = &[
    n::mmap,
    n::munmap,
    n::mprotect,
    n::pkey_mprotect,
    n::pkey_alloc,
    n::pkey_free,
    n::mremap,
    n::brk,
    n::madvise,
    n::process_madvise,
    n::process_mrelease,
    n::msync,
    n::mlock,
    n::mlock2,
    n::munlock,
    n::mlockall,
    n::munlockall,
    n::mseal,
    n::map_shadow_stack,
    n::remap_file_pages,
    n::mbind,
    n::set_mempolicy,
    n::set_mempolicy_home_node,
    n::migrate_pages,
    n::membarrier,
];

/// One byte a page.
fn residency(call: &mut Call<'_>) -> Known {
    if call.wrote() {
        let [_, length, bytes, ..] = call.arguments;
        call.put(bytes, length.div_ceil(0x1000));
    }
    Known::Yes
}

/// The policy, and a bit for each node, in whole words.
fn policy(call: &mut Call<'_>) -> Known {
    if call.wrote() {
        let [mode, nodes, most, ..] = call.arguments;
        call.put(mode, 4);
        call.put(nodes, most.saturating_sub(1).div_ceil(64).min(512) * 8);
    }
    Known::Yes
}

/// The state of every page is written as the work goes on, so also if it fails in the middle.
fn moved(call: &mut Call<'_>) -> Known {
    let [_, count, _, _, states, _] = call.arguments;
    call.put(states, count.saturating_mul(4));
    Known::Yes
}
