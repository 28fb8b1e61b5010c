//! The address space. That a mapping has new contents is not a write: see [`crate::mapped`].

use crate::Known;
use crate::call::Call;
use crate::reads::Reading;
use crate::row::Row;

system_calls! {
    27 mincore(Address, Size, Output), writes Row::after(residency);
    239 get_mempolicy(Output, Output, Size, Address, Flags), writes Row::after(policy);
    279 move_pages(Pid, Size, InputItems(8, 1), InputItems(4, 1), Output, Flags),
        writes Row::after(moved);
    323 userfaultfd(Flags),
        writes Row::unknown("page faults are answered by another thread or process");

    // Calls that write nothing into the memory of the caller.
    9 mmap(Address, Size, Flags, Flags, Fd, Size);
    11 munmap(Address, Size);
    10 mprotect(Address, Size, Flags);
    329 pkey_mprotect(Address, Size, Flags, Number);
    330 pkey_alloc(Flags, Flags);
    331 pkey_free(Number);
    25 mremap(Address, Size, Size, Flags, Address);
    12 brk(Address);
    28 madvise(Address, Size, Number);
    440 process_madvise(Fd, Vector(2), Size, Number, Flags);
    448 process_mrelease(Fd, Flags);
    26 msync(Address, Size, Flags);
    149 mlock(Address, Size);
    325 mlock2(Address, Size, Flags);
    150 munlock(Address, Size);
    151 mlockall(Flags);
    152 munlockall();
    462 mseal(Address, Size, Flags);
    453 map_shadow_stack(Address, Size, Flags);
    216 remap_file_pages(Address, Size, Flags, Size, Flags);
    237 mbind(Address, Size, Number, Input(VARIES), Size, Flags), reads mbind_reads;
    238 set_mempolicy(Number, Input(VARIES), Size), reads set_mempolicy_reads;
    450 set_mempolicy_home_node(Address, Size, Size, Flags);
    256 migrate_pages(Pid, Size, Input(VARIES), Input(VARIES)), reads migrate_pages_reads;
    324 membarrier(Number, Flags, Number);
}

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

/// A mask of nodes has one bit less than its length says.
fn nodes(reading: &mut Reading<'_>, mask: u64, most: u64) {
    const LARGEST: u64 = 8 * 4096;
    reading.bits(mask, most.saturating_sub(1).min(LARGEST));
}

fn mbind_reads(reading: &mut Reading<'_>) {
    let [_, _, _, mask, most, _] = reading.arguments;
    nodes(reading, mask, most);
}

fn set_mempolicy_reads(reading: &mut Reading<'_>) {
    let [_, mask, most, ..] = reading.arguments;
    nodes(reading, mask, most);
}

fn migrate_pages_reads(reading: &mut Reading<'_>) {
    let [_, most, from, to, ..] = reading.arguments;
    nodes(reading, from, most);
    nodes(reading, to, most);
}
