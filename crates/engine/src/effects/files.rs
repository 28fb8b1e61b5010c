//! Files, folders, their attributes, pipes.

use super::call::{self, Call};
use super::row::Part::{Always, Answer, Fixed, Items, Text, Whole};
use super::row::{Row, sorted};
use super::{Before, Known, Peek};
use base::system_call::number as n;
use std::mem::size_of;

const STAT: u64 = size_of::<libc::stat>() as u64;
const STATFS: u64 = size_of::<libc::statfs>() as u64;
const OFFSET: u64 = 8;

/// Bytes read into the buffers of an `iovec` array, which the second and third argument tell.
pub const VECTOR: Row = Row::around(before_vector, vector);

pub const ROWS: &[(u64, Row)] = &[
    (n::read, Row::Writes(&[Answer(1, 2)])),
    (n::pread64, Row::Writes(&[Answer(1, 2)])),
    (n::readv, VECTOR),
    (n::preadv, VECTOR),
    (n::preadv2, VECTOR),
    // Of the write end of a pipe it writes nothing, but its arguments do not tell which end it is.
    (n::vmsplice, VECTOR),
    (n::stat, Row::Writes(&[Fixed(1, STAT)])),
    (n::fstat, Row::Writes(&[Fixed(1, STAT)])),
    (n::lstat, Row::Writes(&[Fixed(1, STAT)])),
    (n::newfstatat, Row::Writes(&[Fixed(2, STAT)])),
    (n::statx, Row::Writes(&[Fixed(4, size_of::<libc::statx>() as u64)])),
    (n::statfs, Row::Writes(&[Fixed(1, STATFS)])),
    (n::fstatfs, Row::Writes(&[Fixed(1, STATFS)])),
    (n::ustat, Row::Writes(&[Fixed(1, 32)])),
    (n::pipe, Row::Writes(&[Fixed(0, 8)])),
    (n::pipe2, Row::Writes(&[Fixed(0, 8)])),
    (n::sendfile, Row::Writes(&[Always(2, OFFSET)])),
    (n::splice, Row::Writes(&[Fixed(1, OFFSET), Fixed(3, OFFSET)])),
    (n::copy_file_range, Row::Writes(&[Fixed(1, OFFSET), Fixed(3, OFFSET)])),
    (n::getdents, Row::Writes(&[Answer(1, 2)])),
    (n::getdents64, Row::Writes(&[Answer(1, 2)])),
    (n::getcwd, Row::Writes(&[Answer(0, 1)])),
    (n::readlink, Row::Writes(&[Answer(1, 2)])),
    (n::readlinkat, Row::Writes(&[Answer(2, 3)])),
    // With a size of 0 the answer is what room it would take, and nothing is written.
    (n::getxattr, Row::Writes(&[Answer(2, 3)])),
    (n::lgetxattr, Row::Writes(&[Answer(2, 3)])),
    (n::fgetxattr, Row::Writes(&[Answer(2, 3)])),
    (n::getxattrat, Row::around(before_attribute_at, attribute_at)),
    (n::listxattr, Row::Writes(&[Answer(1, 2)])),
    (n::llistxattr, Row::Writes(&[Answer(1, 2)])),
    (n::flistxattr, Row::Writes(&[Answer(1, 2)])),
    (n::listxattrat, Row::Writes(&[Answer(3, 4)])),
    (n::file_getattr, Row::Writes(&[Whole(2, 3)])),
    (n::cachestat, Row::Writes(&[Fixed(2, 40)])),
    (n::name_to_handle_at, Row::after(handle)),
    (n::statmount, Row::after(mount)),
    (n::listmount, Row::Writes(&[Items(1, 8, 2)])),
    (n::sysfs, Row::choice(0, SYSFS)),
    (n::fcntl, Row::choice(1, FCNTL)),
    (n::quotactl, quota(0)),
    (n::quotactl_fd, quota(1)),
];

pub const NOTHING: &[u64] = &[
    n::write,
    n::pwrite64,
    n::writev,
    n::pwritev,
    n::pwritev2,
    n::open,
    n::openat,
    n::openat2,
    n::open_by_handle_at,
    n::creat,
    n::close,
    n::close_range,
    n::lseek,
    n::access,
    n::faccessat,
    n::faccessat2,
    n::dup,
    n::dup2,
    n::dup3,
    n::flock,
    n::fsync,
    n::fdatasync,
    n::sync,
    n::syncfs,
    n::sync_file_range,
    n::truncate,
    n::ftruncate,
    n::fallocate,
    n::fadvise64,
    n::readahead,
    n::tee,
    n::chdir,
    n::fchdir,
    n::chroot,
    n::rename,
    n::renameat,
    n::renameat2,
    n::mkdir,
    n::mkdirat,
    n::rmdir,
    n::link,
    n::linkat,
    n::unlink,
    n::unlinkat,
    n::symlink,
    n::symlinkat,
    n::mknod,
    n::mknodat,
    n::chmod,
    n::fchmod,
    n::fchmodat,
    n::fchmodat2,
    n::chown,
    n::fchown,
    n::lchown,
    n::fchownat,
    n::umask,
    n::utime,
    n::utimes,
    n::utimensat,
    n::futimesat,
    n::setxattr,
    n::lsetxattr,
    n::fsetxattr,
    n::setxattrat,
    n::removexattr,
    n::lremovexattr,
    n::fremovexattr,
    n::removexattrat,
    n::file_setattr,
    n::inotify_init,
    n::inotify_init1,
    n::inotify_add_watch,
    n::inotify_rm_watch,
    n::fanotify_init,
    n::fanotify_mark,
    n::mount,
    n::umount2,
    n::pivot_root,
    n::open_tree,
    n::open_tree_attr,
    n::move_mount,
    n::fsopen,
    n::fsconfig,
    n::fsmount,
    n::fspick,
    n::mount_setattr,
    n::memfd_create,
    n::memfd_secret,
    n::ioprio_set,
    n::ioprio_get,
];

/// `sysfs` tells the name of a kind of file system.
const SYSFS: &[(u64, Row)] =
    &sorted([(1, Row::Nothing), (2, Row::Writes(&[Text(2)])), (3, Row::Nothing)]);

const FLOCK: Row = Row::Writes(&[Fixed(2, size_of::<libc::flock>() as u64)]);
const HINT: Row = Row::Writes(&[Fixed(2, 8)]);

const FCNTL: &[(u64, Row)] = &sorted([
    (libc::F_GETLK as u64, FLOCK),
    (libc::F_OFD_GETLK as u64, FLOCK),
    (16, Row::Writes(&[Fixed(2, 8)])),   // F_GETOWN_EX
    (17, Row::Writes(&[Fixed(2, 8)])),   // F_GETOWNER_UIDS
    (1035, HINT),                        // F_GET_RW_HINT
    (1037, HINT),                        // F_GET_FILE_RW_HINT
    (1039, Row::Writes(&[Fixed(2, 8)])), // F_GETDELEG
    (libc::F_DUPFD as u64, Row::Nothing),
    (libc::F_GETFD as u64, Row::Nothing),
    (libc::F_SETFD as u64, Row::Nothing),
    (libc::F_GETFL as u64, Row::Nothing),
    (libc::F_SETFL as u64, Row::Nothing),
    (libc::F_SETLK as u64, Row::Nothing),
    (libc::F_SETLKW as u64, Row::Nothing),
    (libc::F_SETOWN as u64, Row::Nothing),
    (libc::F_GETOWN as u64, Row::Nothing),
    (10, Row::Nothing), // F_SETSIG
    (11, Row::Nothing), // F_GETSIG
    (15, Row::Nothing), // F_SETOWN_EX
    (libc::F_OFD_SETLK as u64, Row::Nothing),
    (libc::F_OFD_SETLKW as u64, Row::Nothing),
    (1024, Row::Nothing), // F_SETLEASE
    (1025, Row::Nothing), // F_GETLEASE
    (1026, Row::Nothing), // F_NOTIFY
    (1027, Row::Nothing), // F_DUPFD_QUERY
    (1028, Row::Nothing), // F_CREATED_QUERY
    (libc::F_DUPFD_CLOEXEC as u64, Row::Nothing),
    (libc::F_SETPIPE_SZ as u64, Row::Nothing),
    (libc::F_GETPIPE_SZ as u64, Row::Nothing),
    (libc::F_ADD_SEALS as u64, Row::Nothing),
    (libc::F_GET_SEALS as u64, Row::Nothing),
    (1036, Row::Nothing), // F_SET_RW_HINT
    (1038, Row::Nothing), // F_SET_FILE_RW_HINT
    (1040, Row::Nothing), // F_SETDELEG
]);

/// Quotas: the lowest byte of the command says whose, the rest what.
const fn quota(argument: usize) -> Row {
    const OTHERS: Row = Row::Unknown("the table does not know this request");
    Row::Choice { argument, bits: 0xffff_ff00, rows: QUOTA, others: &OTHERS }
}

const QUOTA: &[(u64, Row)] = &sorted([
    (0x8000_0400, Row::Writes(&[Fixed(3, 4)])),   // Q_GETFMT
    (0x8000_0500, Row::Writes(&[Fixed(3, 24)])),  // Q_GETINFO
    (0x8000_0700, Row::Writes(&[Fixed(3, 72)])),  // Q_GETQUOTA
    (0x8000_0900, Row::Writes(&[Fixed(3, 72)])),  // Q_GETNEXTQUOTA
    (0x0058_0300, Row::Writes(&[Fixed(3, 112)])), // Q_XGETQUOTA
    (0x0058_0500, Row::Writes(&[Fixed(3, 80)])),  // Q_XGETQSTAT
    (0x0058_0800, Row::Writes(&[Fixed(3, 160)])), // Q_XGETQSTATV
    (0x0058_0900, Row::Writes(&[Fixed(3, 112)])), // Q_XGETNEXTQUOTA
    (0x8000_0100, Row::Nothing),                  // Q_SYNC
    (0x8000_0200, Row::Nothing),                  // Q_QUOTAON
    (0x8000_0300, Row::Nothing),                  // Q_QUOTAOFF
    (0x8000_0600, Row::Nothing),                  // Q_SETINFO
    (0x8000_0800, Row::Nothing),                  // Q_SETQUOTA
    (0x0058_0100, Row::Nothing),                  // Q_XQUOTAON
    (0x0058_0200, Row::Nothing),                  // Q_XQUOTAOFF
    (0x0058_0400, Row::Nothing),                  // Q_XSETQLIM
    (0x0058_0600, Row::Nothing),                  // Q_XQUOTARM
    (0x0058_0700, Row::Nothing),                  // Q_XQUOTASYNC
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
