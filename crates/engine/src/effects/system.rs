//! The machine as a whole: what it is, its log, keys, modules, security modules; and calls that no
//! kernel of today has.

use super::Known;
use super::call::Call;
use super::row::Part::{Answer, Fixed, Whole};
use super::row::{Row, sorted};
use base::system_call::number as n;
use std::mem::size_of;

pub const ROWS: &[(u64, Row)] = &[
    (n::uname, Row::Writes(&[Fixed(0, size_of::<libc::utsname>() as u64)])),
    (n::sysinfo, Row::Writes(&[Fixed(0, size_of::<libc::sysinfo>() as u64)])),
    (n::getrandom, Row::Writes(&[Answer(0, 1)])),
    (n::syslog, Row::choice(0, SYSLOG)),
    (n::keyctl, Row::choice(0, KEYCTL)),
    (n::modify_ldt, Row::choice(0, LDT)),
    (n::lsm_get_self_attr, Row::after(security_attribute)),
    (n::lsm_list_modules, Row::after(security_modules)),
    (n::bpf, Row::Unknown("programs and maps of the kernel are beyond a recording")),
    (n::perf_event_open, Row::Unknown("counters are read through memory that the kernel writes")),
    (n::uretprobe, Row::Unknown("it belongs to a probe of the kernel")),
    (n::uprobe, Row::Unknown("it belongs to a probe of the kernel")),
];

pub const NOTHING: &[u64] = &[
    n::add_key,
    n::request_key,
    n::lsm_set_self_attr,
    n::sethostname,
    n::setdomainname,
    n::acct,
    n::swapon,
    n::swapoff,
    n::reboot,
    n::vhangup,
    n::iopl,
    n::ioperm,
    n::init_module,
    n::finit_module,
    n::delete_module,
    n::kexec_load,
    n::kexec_file_load,
    // ENOSYS on every kernel of today, or at least for 64-bit programs:
    n::set_thread_area,
    n::get_thread_area,
    n::lookup_dcookie,
    n::uselib,
    n::_sysctl,
    n::create_module,
    n::get_kernel_syms,
    n::query_module,
    n::nfsservctl,
    n::getpmsg,
    n::putpmsg,
    n::afs_syscall,
    n::tuxcall,
    n::security,
    n::epoll_ctl_old,
    n::epoll_wait_old,
    n::vserver,
];

/// Reading the kernel's log; the rest sets or asks a number.
const SYSLOG: &[(u64, Row)] = &sorted([
    (0, Row::Nothing),
    (1, Row::Nothing),
    (2, Row::Writes(&[Answer(1, 2)])),
    (3, Row::Writes(&[Answer(1, 2)])),
    (4, Row::Writes(&[Answer(1, 2)])),
    (5, Row::Nothing),
    (6, Row::Nothing),
    (7, Row::Nothing),
    (8, Row::Nothing),
    (9, Row::Nothing),
    (10, Row::Nothing),
]);

const LDT: &[(u64, Row)] = &sorted([
    (0, Row::Writes(&[Answer(1, 2)])),
    (1, Row::Nothing),
    (2, Row::Writes(&[Answer(1, 2)])),
    (0x11, Row::Nothing),
]);

/// A description, a key's contents: as much as there is room for.
const KEY_TEXT: Row = Row::Writes(&[Answer(2, 3)]);
/// Results of cryptography; how much room there is stands in a structure.
const KEY_RESULT: Row = Row::after(|call| {
    if call.wrote() && !call.failed() {
        call.put(call.arguments[4], call.amount());
    }
    Known::Yes
});

const KEYCTL: &[(u64, Row)] = &sorted([
    (6, KEY_TEXT),                      // KEYCTL_DESCRIBE
    (11, KEY_TEXT),                     // KEYCTL_READ
    (17, KEY_TEXT),                     // KEYCTL_GET_SECURITY
    (23, KEY_TEXT),                     // KEYCTL_DH_COMPUTE
    (24, Row::Writes(&[Fixed(4, 56)])), // KEYCTL_PKEY_QUERY
    (25, KEY_RESULT),                   // KEYCTL_PKEY_ENCRYPT
    (26, KEY_RESULT),                   // KEYCTL_PKEY_DECRYPT
    (27, KEY_RESULT),                   // KEYCTL_PKEY_SIGN
    (31, Row::Writes(&[Whole(1, 2)])),  // KEYCTL_CAPABILITIES
    (0, Row::Nothing),
    (1, Row::Nothing),
    (2, Row::Nothing),
    (3, Row::Nothing),
    (4, Row::Nothing),
    (5, Row::Nothing),
    (7, Row::Nothing),
    (8, Row::Nothing),
    (9, Row::Nothing),
    (10, Row::Nothing),
    (12, Row::Nothing),
    (13, Row::Nothing),
    (14, Row::Nothing),
    (15, Row::Nothing),
    (16, Row::Nothing),
    (18, Row::Nothing),
    (19, Row::Nothing),
    (20, Row::Nothing),
    (21, Row::Nothing),
    (22, Row::Nothing),
    (28, Row::Nothing),
    (29, Row::Nothing),
    (30, Row::Nothing),
    (32, Row::Nothing),
]);

/// Contexts of security modules, and how many bytes they are or would have been, whatever goes wrong.
fn security_attribute(call: &mut Call<'_>) -> Known {
    let [_, contexts, size, ..] = call.arguments;
    if call.wrote() {
        let length = call.word(size);
        call.put(contexts, length);
    }
    call.put(size, 4);
    Known::Yes
}

/// Numbers of security modules; the answer counts them.
fn security_modules(call: &mut Call<'_>) -> Known {
    let [numbers, size, ..] = call.arguments;
    if call.wrote() || call.is(libc::E2BIG) {
        if !call.is(libc::E2BIG) {
            call.put(numbers, call.amount().min(0x1000).saturating_mul(8));
        }
        call.put(size, 4);
    }
    Known::Yes
}
