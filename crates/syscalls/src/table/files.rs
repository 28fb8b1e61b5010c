//! Files, folders, their attributes, pipes.

use crate::call::{self, Call};
use crate::reads::{Content, Reading};
use crate::row::Part::{Always, Answer, Fixed, Items, Text, Whole};
use crate::row::{Row, Take, sorted};
use crate::{Before, Known, Peek};
use std::mem::size_of;

const STAT: u64 = size_of::<libc::stat>() as u64;
const STATFS: u64 = size_of::<libc::statfs>() as u64;
const OFFSET: u64 = 8;

/// Bytes read into the buffers of an `iovec` array, which the second and third argument tell.
pub const VECTOR: Row = Row::around(before_vector, vector);

system_calls! {
    0 read(Fd, Out(2), Size), writes Row::writes(&[Answer(1, 2)]);
    17 pread64(Fd, Out(2), Size, Number), writes Row::writes(&[Answer(1, 2)]);
    19 readv(Fd, Vector(2), Size), writes VECTOR;
    295 preadv(Fd, Vector(2), Size, Size, Size), writes VECTOR;
    327 preadv2(Fd, Vector(2), Size, Size, Size, Flags), writes VECTOR;
    // Of the write end of a pipe it writes nothing, but its arguments do not tell which end it is.
    278 vmsplice(Fd, DataVector(2), Size, Flags), writes VECTOR;
    4 stat(Path, Output), writes Row::writes(&[Fixed(1, STAT)]);
    5 fstat(Fd, Output), writes Row::writes(&[Fixed(1, STAT)]);
    6 lstat(Path, Output), writes Row::writes(&[Fixed(1, STAT)]);
    262 newfstatat(DirFd, Path, Output, Flags), writes Row::writes(&[Fixed(2, STAT)]);
    332 statx(DirFd, Path, Flags, Flags, Output),
        writes Row::writes(&[Fixed(4, size_of::<libc::statx>() as u64)]);
    137 statfs(Path, Output), writes Row::writes(&[Fixed(1, STATFS)]);
    138 fstatfs(Fd, Output), writes Row::writes(&[Fixed(1, STATFS)]);
    136 ustat(Size, Output), writes Row::writes(&[Fixed(1, 32)]);
    22 pipe(Output), writes Row::writes(&[Fixed(0, 8)]);
    293 pipe2(Output, Flags), writes Row::writes(&[Fixed(0, 8)]);
    40 sendfile(Fd, Fd, Update(OFFSET), Size), writes Row::writes(&[Always(2, OFFSET)]);
    275 splice(Fd, Update(OFFSET), Fd, Update(OFFSET), Size, Flags),
        writes Row::writes(&[Fixed(1, OFFSET), Fixed(3, OFFSET)]);
    326 copy_file_range(Fd, Update(OFFSET), Fd, Update(OFFSET), Size, Flags),
        writes Row::writes(&[Fixed(1, OFFSET), Fixed(3, OFFSET)]);
    78 getdents(Fd, Out(2), Size), writes Row::writes(&[Answer(1, 2)]);
    217 getdents64(Fd, Out(2), Size), writes Row::writes(&[Answer(1, 2)]);
    79 getcwd(Out(1), Size), writes Row::writes(&[Answer(0, 1)]);
    89 readlink(Path, Out(2), Size), writes Row::writes(&[Answer(1, 2)]);
    267 readlinkat(DirFd, Path, Out(3), Size), writes Row::writes(&[Answer(2, 3)]);
    // With a size of 0 the answer is what room it would take, and nothing is written.
    191 getxattr(Path, Text, Out(3), Size), writes Row::writes(&[Answer(2, 3)]);
    192 lgetxattr(Path, Text, Out(3), Size), writes Row::writes(&[Answer(2, 3)]);
    193 fgetxattr(Fd, Text, Out(3), Size), writes Row::writes(&[Answer(2, 3)]);
    464 getxattrat(DirFd, Path, Flags, Text, Update(16), Size),
        writes Row::around(before_attribute_at, attribute_at);
    194 listxattr(Path, Out(2), Size), writes Row::writes(&[Answer(1, 2)]);
    195 llistxattr(Path, Out(2), Size), writes Row::writes(&[Answer(1, 2)]);
    196 flistxattr(Fd, Out(2), Size), writes Row::writes(&[Answer(1, 2)]);
    465 listxattrat(DirFd, Path, Flags, Out(4), Size), writes Row::writes(&[Answer(3, 4)]);
    468 file_getattr(DirFd, Path, Out(3), Size, Flags), writes Row::writes(&[Whole(2, 3)]);
    451 cachestat(Fd, Input(16), Output, Flags), writes Row::writes(&[Fixed(2, 40)]);
    303 name_to_handle_at(DirFd, Path, Update(8), Output, Flags), writes Row::after(handle);
    457 statmount(Input(VARIES), Out(2), Size, Flags), writes Row::after(mount),
        reads request_reads;
    458 listmount(Input(VARIES), Output, Size, Flags), writes Row::writes(&[Items(1, 8, 2)]),
        reads request_reads;
    139 sysfs(Number, Address, Address), writes Row::choice(0, SYSFS);
    72 fcntl(Fd, Number, Address), writes Row::choice(1, FCNTL);
    179 quotactl(Flags, Path, Number, Address), writes quota(0);
    443 quotactl_fd(Fd, Flags, Number, Address), writes quota(1);

    // Calls that write nothing into the memory of the caller.
    1 write(Fd, Data(2), Size);
    18 pwrite64(Fd, Data(2), Size, Number);
    20 writev(Fd, DataVector(2), Size);
    296 pwritev(Fd, DataVector(2), Size, Size, Size);
    328 pwritev2(Fd, DataVector(2), Size, Size, Size, Flags);
    2 open(Path, Flags, Mode);
    257 openat(DirFd, Path, Flags, Mode);
    437 openat2(DirFd, Path, In(3), Size);
    304 open_by_handle_at(Fd, Input(VARIES), Flags), reads handle_reads;
    85 creat(Path, Mode);
    3 close(Fd);
    436 close_range(Fd, Fd, Flags);
    8 lseek(Fd, Number, Number);
    21 access(Path, Mode);
    269 faccessat(DirFd, Path, Mode);
    439 faccessat2(DirFd, Path, Mode, Flags);
    32 dup(Fd);
    33 dup2(Fd, Fd);
    292 dup3(Fd, Fd, Flags);
    73 flock(Fd, Number);
    74 fsync(Fd);
    75 fdatasync(Fd);
    162 sync();
    306 syncfs(Fd);
    277 sync_file_range(Fd, Number, Number, Flags);
    76 truncate(Path, Number);
    77 ftruncate(Fd, Number);
    285 fallocate(Fd, Flags, Number, Number);
    221 fadvise64(Fd, Number, Size, Number);
    187 readahead(Fd, Number, Size);
    276 tee(Fd, Fd, Size, Flags);
    80 chdir(Path);
    81 fchdir(Fd);
    161 chroot(Path);
    82 rename(Path, Path);
    264 renameat(DirFd, Path, DirFd, Path);
    316 renameat2(DirFd, Path, DirFd, Path, Flags);
    83 mkdir(Path, Mode);
    258 mkdirat(DirFd, Path, Mode);
    84 rmdir(Path);
    86 link(Path, Path);
    265 linkat(DirFd, Path, DirFd, Path, Flags);
    87 unlink(Path);
    263 unlinkat(DirFd, Path, Flags);
    88 symlink(Text, Path);
    266 symlinkat(Text, DirFd, Path);
    133 mknod(Path, Mode, Size);
    259 mknodat(DirFd, Path, Mode, Size);
    90 chmod(Path, Mode);
    91 fchmod(Fd, Mode);
    268 fchmodat(DirFd, Path, Mode);
    452 fchmodat2(DirFd, Path, Mode, Flags);
    92 chown(Path, Number, Number);
    93 fchown(Fd, Number, Number);
    94 lchown(Path, Number, Number);
    260 fchownat(DirFd, Path, Number, Number, Flags);
    95 umask(Mode);
    132 utime(Path, Input(16));
    235 utimes(Path, Input(32));
    280 utimensat(DirFd, Path, Input(32), Flags);
    261 futimesat(DirFd, Path, Input(32));
    188 setxattr(Path, Text, In(3), Size, Flags);
    189 lsetxattr(Path, Text, In(3), Size, Flags);
    190 fsetxattr(Fd, Text, In(3), Size, Flags);
    463 setxattrat(DirFd, Path, Flags, Text, In(5), Size), reads setxattrat_reads;
    197 removexattr(Path, Text);
    198 lremovexattr(Path, Text);
    199 fremovexattr(Fd, Text);
    466 removexattrat(DirFd, Path, Flags, Text);
    469 file_setattr(DirFd, Path, In(3), Size, Flags);
    253 inotify_init();
    294 inotify_init1(Flags);
    254 inotify_add_watch(Fd, Path, Flags);
    255 inotify_rm_watch(Fd, Number);
    300 fanotify_init(Flags, Flags);
    301 fanotify_mark(Fd, Flags, Flags, DirFd, Path);
    165 mount(Text, Path, Text, Flags, Address);
    166 umount2(Path, Flags);
    155 pivot_root(Path, Path);
    428 open_tree(DirFd, Path, Flags);
    467 open_tree_attr(DirFd, Path, Flags, In(4), Size);
    429 move_mount(DirFd, Path, DirFd, Path, Flags);
    430 fsopen(Text, Flags);
    431 fsconfig(Fd, Number, Text, Address, Number);
    432 fsmount(Fd, Flags, Flags);
    433 fspick(DirFd, Path, Flags);
    442 mount_setattr(DirFd, Path, Flags, In(4), Size);
    319 memfd_create(Text, Flags);
    447 memfd_secret(Flags);
    251 ioprio_set(Number, Number, Number);
    252 ioprio_get(Number, Number);
}

/// `sysfs` tells the name of a kind of file system.
const SYSFS: &[(u64, Row)] =
    &sorted([(1, Row::takes(&[Take::Text(1)])), (2, Row::writes(&[Text(2)])), (3, Row::NOTHING)]);

const LOCK: u64 = size_of::<libc::flock>() as u64;
const FLOCK: Row = Row::writes(&[Fixed(2, LOCK)]).taking(&[Take::Bytes(2, LOCK)]);
const SET_FLOCK: Row = Row::takes(&[Take::Bytes(2, LOCK)]);
const SET_EIGHT: Row = Row::takes(&[Take::Bytes(2, 8)]);
const HINT: Row = Row::writes(&[Fixed(2, 8)]);

const FCNTL: &[(u64, Row)] = &sorted([
    (libc::F_GETLK as u64, FLOCK),
    (libc::F_OFD_GETLK as u64, FLOCK),
    (16, Row::writes(&[Fixed(2, 8)])), // F_GETOWN_EX
    (17, Row::writes(&[Fixed(2, 8)])), // F_GETOWNER_UIDS
    (1035, HINT),                      // F_GET_RW_HINT
    (1037, HINT),                      // F_GET_FILE_RW_HINT
    (1039, Row::writes(&[Fixed(2, 8)]).taking(&[Take::Bytes(2, 8)])), // F_GETDELEG
    (libc::F_DUPFD as u64, Row::NOTHING),
    (libc::F_GETFD as u64, Row::NOTHING),
    (libc::F_SETFD as u64, Row::NOTHING),
    (libc::F_GETFL as u64, Row::NOTHING),
    (libc::F_SETFL as u64, Row::NOTHING),
    (libc::F_SETLK as u64, SET_FLOCK),
    (libc::F_SETLKW as u64, SET_FLOCK),
    (libc::F_SETOWN as u64, Row::NOTHING),
    (libc::F_GETOWN as u64, Row::NOTHING),
    (10, Row::NOTHING), // F_SETSIG
    (11, Row::NOTHING), // F_GETSIG
    (15, SET_EIGHT),    // F_SETOWN_EX
    (libc::F_OFD_SETLK as u64, SET_FLOCK),
    (libc::F_OFD_SETLKW as u64, SET_FLOCK),
    (1024, Row::NOTHING), // F_SETLEASE
    (1025, Row::NOTHING), // F_GETLEASE
    (1026, Row::NOTHING), // F_NOTIFY
    (1027, Row::NOTHING), // F_DUPFD_QUERY
    (1028, Row::NOTHING), // F_CREATED_QUERY
    (libc::F_DUPFD_CLOEXEC as u64, Row::NOTHING),
    (libc::F_SETPIPE_SZ as u64, Row::NOTHING),
    (libc::F_GETPIPE_SZ as u64, Row::NOTHING),
    (libc::F_ADD_SEALS as u64, Row::NOTHING),
    (libc::F_GET_SEALS as u64, Row::NOTHING),
    (1036, SET_EIGHT), // F_SET_RW_HINT
    (1038, SET_EIGHT), // F_SET_FILE_RW_HINT
    (1040, SET_EIGHT), // F_SETDELEG
]);

/// Quotas: the lowest byte of the command says whose, the rest what.
const fn quota(argument: usize) -> Row {
    const OTHERS: Row = Row::unknown("the table does not know this request");
    Row::select(argument, 0xffff_ff00, QUOTA, &OTHERS)
}

const QUOTA: &[(u64, Row)] = &sorted([
    (0x8000_0400, Row::writes(&[Fixed(3, 4)])),   // Q_GETFMT
    (0x8000_0500, Row::writes(&[Fixed(3, 24)])),  // Q_GETINFO
    (0x8000_0700, Row::writes(&[Fixed(3, 72)])),  // Q_GETQUOTA
    (0x8000_0900, Row::writes(&[Fixed(3, 72)])),  // Q_GETNEXTQUOTA
    (0x0058_0300, Row::writes(&[Fixed(3, 112)])), // Q_XGETQUOTA
    (0x0058_0500, Row::writes(&[Fixed(3, 80)])),  // Q_XGETQSTAT
    (0x0058_0800, Row::writes(&[Fixed(3, 160)]).taking(&[Take::Bytes(3, 1)])), // Q_XGETQSTATV
    (0x0058_0900, Row::writes(&[Fixed(3, 112)])), // Q_XGETNEXTQUOTA
    (0x8000_0100, Row::NOTHING),                  // Q_SYNC
    (0x8000_0200, Row::takes(&[Take::Text(3)])),  // Q_QUOTAON
    (0x8000_0300, Row::NOTHING),                  // Q_QUOTAOFF
    (0x8000_0600, Row::takes(&[Take::Bytes(3, 24)])), // Q_SETINFO
    (0x8000_0800, Row::takes(&[Take::Bytes(3, 72)])), // Q_SETQUOTA
    (0x0058_0100, Row::takes(&[Take::Bytes(3, 4)])), // Q_XQUOTAON
    (0x0058_0200, Row::takes(&[Take::Bytes(3, 4)])), // Q_XQUOTAOFF
    (0x0058_0400, Row::takes(&[Take::Bytes(3, 112)])), // Q_XSETQLIM
    (0x0058_0600, Row::takes(&[Take::Bytes(3, 4)])), // Q_XQUOTARM
    (0x0058_0700, Row::NOTHING),                  // Q_XQUOTASYNC
]);

fn before_vector(a: &[u64; 6], memory: &dyn Peek, before: &mut Before) {
    call::pieces(memory, a[1], a[2], &mut before.pieces);
}

fn vector(call: &mut Call<'_>) -> Known {
    if call.wrote() {
        let before = call.before;
        call.spread(&before.pieces, call.amount());
    }
    Known::Yes
}

/// `struct xattr_args`: where the value goes, and how much room there is.
fn before_attribute_at(a: &[u64; 6], memory: &dyn Peek, before: &mut Before) {
    before.words = [call::long(memory, a[4]), call::word(memory, a[4].wrapping_add(8))];
}

fn attribute_at(call: &mut Call<'_>) -> Known {
    if call.wrote() {
        let [address, room] = call.before.words;
        call.put(address, call.amount().min(room));
    }
    Known::Yes
}

/// `struct file_handle` and the number of the mount. When the handle does not fit, only its head
/// with the size that it needs is written.
fn handle(call: &mut Call<'_>) -> Known {
    const HEAD: u64 = 8;
    const LONGEST: u64 = 128;
    const WIDE_MOUNT: u64 = 1;
    if !call.wrote() && !call.is(libc::EOVERFLOW) {
        return Known::Yes;
    }
    let [_, _, handle, mount, flags, _] = call.arguments;
    let length = if call.is(libc::EOVERFLOW) { 0 } else { call.word(handle).min(LONGEST) };
    call.put(handle, HEAD + length);
    call.put(mount, if flags & WIDE_MOUNT == 0 { 4 } else { 8 });
    Known::Yes
}

/// `struct statmount` starts with its own size.
fn mount(call: &mut Call<'_>) -> Known {
    if call.wrote() {
        let [_, buffer, room, ..] = call.arguments;
        let size = if call.failed() { room } else { call.word(buffer).min(room) };
        call.put(buffer, size);
    }
    Known::Yes
}

/// `struct file_handle`: a size, a type, and so many bytes.
fn handle_reads(reading: &mut Reading<'_>) {
    const HEAD: u64 = 8;
    const LONGEST: u64 = 128;
    let handle = reading.arguments[1];
    reading.parameters(handle, HEAD + reading.word(handle).min(LONGEST));
}

/// `struct mnt_id_req` starts with its own size.
fn request_reads(reading: &mut Reading<'_>) {
    let request = reading.arguments[0];
    reading.parameters(request, reading.word(request).min(0x1000));
}

/// `struct xattr_args` says where the value is.
fn setxattrat_reads(reading: &mut Reading<'_>) {
    let given = reading.arguments[4];
    let length = reading.word(given.wrapping_add(8));
    reading.put(Content::Bytes, reading.long(given), length);
}
