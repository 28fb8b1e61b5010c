//! The machine as a whole: what it is, its log, keys, modules, security modules; and calls that no
//! kernel of today has.

use crate::Known;
use crate::call::Call;
use crate::reads::{Content, Reading};
use crate::row::Part::{Answer, Fixed, Whole};
use crate::row::{Row, Take, sorted};
use std::mem::size_of;

system_calls! {
    63 uname(Output), writes Row::writes(&[Fixed(0, size_of::<libc::utsname>() as u64)]);
    99 sysinfo(Output), writes Row::writes(&[Fixed(0, size_of::<libc::sysinfo>() as u64)]);
    318 getrandom(Out(1), Size, Flags), writes Row::writes(&[Answer(0, 1)]);
    103 syslog(Number, Out(2), Size), writes Row::choice(0, SYSLOG);
    250 keyctl(Number, Address, Address, Address, Address), writes Row::choice(0, KEYCTL);
    154 modify_ldt(Number, Address, Size), writes Row::choice(0, LDT);
    459 lsm_get_self_attr(Number, Output, Update(4), Flags), writes Row::after(security_attribute);
    461 lsm_list_modules(Output, Update(4), Flags), writes Row::after(security_modules);
    321 bpf(Number, In(2), Size),
        writes Row::unknown("programs and maps of the kernel are beyond a recording");
    298 perf_event_open(Update(VARIES), Pid, Number, Fd, Flags),
        writes Row::unknown("counters are read through memory that the kernel writes");
    335 uretprobe(), writes Row::unknown("it belongs to a probe of the kernel");
    336 uprobe(), writes Row::unknown("it belongs to a probe of the kernel");

    // Calls that write nothing into the memory of the caller.
    248 add_key(Text, Text, In(3), Size, Number);
    249 request_key(Text, Text, Text, Number);
    460 lsm_set_self_attr(Number, In(2), Size, Flags);
    170 sethostname(In(1), Size);
    171 setdomainname(In(1), Size);
    163 acct(Path);
    167 swapon(Path, Flags);
    168 swapoff(Path);
    169 reboot(Flags, Flags, Flags, Address);
    153 vhangup();
    172 iopl(Number);
    173 ioperm(Size, Size, Number);
    175 init_module(In(1), Size, Text);
    313 finit_module(Fd, Text, Flags);
    176 delete_module(Text, Flags);
    246 kexec_load(Address, Size, InputItems(32, 1), Flags);
    320 kexec_file_load(Fd, Fd, Size, In(2), Flags);
    // ENOSYS on every kernel of today, or at least for 64-bit programs:
    205 set_thread_area(Address);
    211 get_thread_area(Address);
    212 lookup_dcookie(Size, Out(2), Size);
    134 uselib(Path);
    156 _sysctl(Address);
    174 create_module(Text, Size);
    177 get_kernel_syms(Output);
    178 query_module(Text, Number, Output, Size, Output);
    180 nfsservctl(Number, Address, Address);
    181 getpmsg();
    182 putpmsg();
    183 afs_syscall();
    184 tuxcall();
    185 security();
    214 epoll_ctl_old();
    215 epoll_wait_old();
    236 vserver();
}

/// Reading the kernel's log; the rest sets or asks a number.
const SYSLOG: &[(u64, Row)] = &sorted([
    (0, Row::NOTHING),
    (1, Row::NOTHING),
    (2, Row::writes(&[Answer(1, 2)])),
    (3, Row::writes(&[Answer(1, 2)])),
    (4, Row::writes(&[Answer(1, 2)])),
    (5, Row::NOTHING),
    (6, Row::NOTHING),
    (7, Row::NOTHING),
    (8, Row::NOTHING),
    (9, Row::NOTHING),
    (10, Row::NOTHING),
]);

const LDT: &[(u64, Row)] = &sorted([
    (0, Row::writes(&[Answer(1, 2)])),
    (1, Row::takes(&[Take::Whole(1, 2)])),
    (2, Row::writes(&[Answer(1, 2)])),
    (0x11, Row::takes(&[Take::Whole(1, 2)])),
]);

/// A description, a key's contents: as much as there is room for.
const KEY_TEXT: Row = Row::writes(&[Answer(2, 3)]);
/// Results of cryptography; how much room there is stands in a structure.
const KEY_RESULT: Row = Row::after(|call| {
    if call.wrote() && !call.failed() {
        call.put(call.arguments[4], call.amount());
    }
    Known::Yes
});

/// `struct keyctl_pkey_params`, a text of options, and the input, whose length stands in the former.
const KEY_GIVEN: &[Take] = &[Take::Bytes(1, 32), Take::Text(2), Take::Rule(key_input)];
const KEY_VERIFIED: Row = Row::takes(&[
    Take::Bytes(1, 32),
    Take::Text(2),
    Take::Rule(key_input),
    Take::Rule(|reading| {
        let length = reading.word(reading.arguments[1].wrapping_add(8));
        reading.put(Content::Bytes, reading.arguments[4], length);
    }),
]);

const KEYCTL: &[(u64, Row)] = &sorted([
    (6, KEY_TEXT),                                               // KEYCTL_DESCRIBE
    (11, KEY_TEXT),                                              // KEYCTL_READ
    (17, KEY_TEXT),                                              // KEYCTL_GET_SECURITY
    (23, KEY_TEXT.taking(&[Take::Bytes(1, 12)])),                // KEYCTL_DH_COMPUTE
    (24, Row::writes(&[Fixed(4, 56)]).taking(&[Take::Text(3)])), // KEYCTL_PKEY_QUERY
    (25, KEY_RESULT.taking(KEY_GIVEN)),                          // KEYCTL_PKEY_ENCRYPT
    (26, KEY_RESULT.taking(KEY_GIVEN)),                          // KEYCTL_PKEY_DECRYPT
    (27, KEY_RESULT.taking(KEY_GIVEN)),                          // KEYCTL_PKEY_SIGN
    (31, Row::writes(&[Whole(1, 2)])),                           // KEYCTL_CAPABILITIES
    (0, Row::NOTHING),
    (1, Row::takes(&[Take::Text(1)])), // KEYCTL_JOIN_SESSION_KEYRING
    (2, Row::takes(&[Take::Whole(2, 3)])), // KEYCTL_UPDATE
    (3, Row::NOTHING),
    (4, Row::NOTHING),
    (5, Row::NOTHING),
    (7, Row::NOTHING),
    (8, Row::NOTHING),
    (9, Row::NOTHING),
    (10, Row::takes(&[Take::Text(2), Take::Text(3)])), // KEYCTL_SEARCH
    (12, Row::takes(&[Take::Whole(2, 3)])),            // KEYCTL_INSTANTIATE
    (13, Row::NOTHING),
    (14, Row::NOTHING),
    (15, Row::NOTHING),
    (16, Row::NOTHING),
    (18, Row::NOTHING),
    (19, Row::NOTHING),
    (20, Row::takes(&[Take::Rule(key_reads)])), // KEYCTL_INSTANTIATE_IOV
    (21, Row::NOTHING),
    (22, Row::NOTHING),
    (28, KEY_VERIFIED),                                // KEYCTL_PKEY_VERIFY
    (29, Row::takes(&[Take::Text(2), Take::Text(3)])), // KEYCTL_RESTRICT_KEYRING
    (30, Row::NOTHING),
    (32, Row::NOTHING),
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

/// The contents of a key, as a vector of buffers.
fn key_reads(reading: &mut Reading<'_>) {
    let [_, _, vector, count, ..] = reading.arguments;
    reading.vector(vector, count, Some(Content::Bytes));
}

/// Input of cryptography; its length is the second word of the parameters.
fn key_input(reading: &mut Reading<'_>) {
    let length = reading.word(reading.arguments[1].wrapping_add(4));
    reading.put(Content::Bytes, reading.arguments[3], length);
}
