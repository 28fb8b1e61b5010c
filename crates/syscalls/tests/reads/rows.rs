//! The calls that are made, one a line. Descriptors are those of `make_calls.c`.

use crate::memory::{OUTPUT, Object};
use syscalls::number as n;

/// An argument of a call.
#[derive(Clone, Debug)]
pub enum Given {
    /// A number, or a pointer to where there is room for what the kernel writes.
    Number(u64),
    /// A pointer to an object.
    Pointer(Object),
}

impl From<i64> for Given {
    fn from(number: i64) -> Self {
        Self::Number(number as u64)
    }
}

impl From<Object> for Given {
    fn from(object: Object) -> Self {
        Self::Pointer(object)
    }
}

/// A call with its arguments.
pub type Row = (u64, Vec<Given>);

/// Stands for the process itself.
const MYSELF: i64 = 0xffff_ffff_fffe_5e1f_u64 as i64;
const HERE: i64 = -100;
const OUT: i64 = OUTPUT as i64;

fn text(text: &str) -> Object {
    Object::new([text.as_bytes(), &[0]].concat())
}

fn zeros(length: usize) -> Object {
    Object::new(vec![0; length])
}

fn words(words: &[u32]) -> Object {
    Object::new(words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
}

fn longs(longs: &[u64]) -> Object {
    Object::new(longs.iter().flat_map(|long| long.to_le_bytes()).collect::<Vec<u8>>())
}

fn data() -> Object {
    Object::new(*b"bytes to be sent")
}

/// An `iovec` of one buffer of 16 bytes.
fn vector() -> Object {
    longs(&[0, 16]).link(0, data())
}

/// An `iovec` of one buffer to be written.
fn output_vector() -> Object {
    longs(&[OUTPUT, 16])
}

/// `struct sockaddr_in`: a port of this machine.
fn address(port: u16) -> Object {
    let [high, low] = port.to_be_bytes();
    Object::new([2, 0, high, low, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0])
}

/// `struct msghdr` with an address and a buffer.
fn addressed(port: u16) -> Object {
    longs(&[0, 16, 0, 1, 0, 0, 0]).link(0, address(port)).link(16, vector())
}

/// `struct mmsghdr` with the same; its length is written.
fn addressed_of_many(port: u16) -> Object {
    longs(&[0, 16, 0, 1, 0, 0, 0, 0]).link(0, address(port)).link(16, vector()).with_room(64)
}

/// `struct msghdr` with a buffer, and a descriptor to pass.
fn passing() -> Object {
    let control = words(&[20, 0, 1, 1, 10, 0]);
    longs(&[0, 0, 0, 1, 0, 24, 0]).link(16, vector()).link(32, control)
}

/// `struct msghdr` to be filled.
fn receiving() -> Object {
    longs(&[0, 0, 0, 1, 0, 0, 0]).link(16, output_vector())
}

/// Arguments or variables of a new program.
fn strings(first: &str, second: &str) -> Object {
    longs(&[0, 0, 0]).link(0, text(first)).link(8, text(second))
}

macro_rules! rows {
    ($($name:ident($($argument:expr),* $(,)?);)*) => {
        vec![$((n::$name, vec![$(Given::from($argument)),*])),*]
    };
}

/// All calls; `set` and `queue` are a semaphore set and a message queue, `port` takes datagrams.
pub fn rows(set: i64, queue: i64, port: u16) -> Vec<Row> {
    let mut all = paths();
    all.extend(files());
    all.extend(sockets(port));
    all.extend(waiting(set, queue));
    all.extend(processes());
    all
}

fn paths() -> Vec<Row> {
    rows! {
        open(text("file"), 0, 0);
        openat(HERE, text("file"), 0, 0);
        openat2(HERE, text("file"), zeros(24), 24);
        creat(text("file"), 0o600);
        stat(text("file"), OUT);
        lstat(text("file"), OUT);
        newfstatat(HERE, text("file"), OUT, 0);
        statx(HERE, text("file"), 0, 0xfff, OUT);
        statfs(text("file"), OUT);
        access(text("file"), 0);
        faccessat(HERE, text("file"), 0);
        faccessat2(HERE, text("file"), 0, 0);
        readlink(text("file"), OUT, 10);
        readlinkat(HERE, text("file"), OUT, 10);
        truncate(text("file"), 64);
        chdir(text("dir"));
        chroot(text("dir"));
        rename(text("none"), text("nothing"));
        renameat(HERE, text("none"), HERE, text("nothing"));
        renameat2(HERE, text("none"), HERE, text("nothing"), 0);
        mkdir(text("dir"), 0);
        mkdirat(HERE, text("dir"), 0);
        rmdir(text("none"));
        link(text("file"), text("dir"));
        linkat(HERE, text("file"), HERE, text("dir"), 0);
        unlink(text("none"));
        unlinkat(HERE, text("none"), 0);
        symlink(text("target"), text("dir"));
        symlinkat(text("target"), HERE, text("dir"));
        mknod(text("dir"), 0o100_600, 0);
        mknodat(HERE, text("dir"), 0o100_600, 0);
        chmod(text("file"), 0o600);
        fchmodat(HERE, text("file"), 0o600);
        fchmodat2(HERE, text("file"), 0o600, 0);
        chown(text("file"), -1, -1);
        lchown(text("file"), -1, -1);
        fchownat(HERE, text("file"), -1, -1, 0);
        utime(text("file"), zeros(16));
        utimes(text("file"), zeros(32));
        futimesat(HERE, text("file"), zeros(32));
        utimensat(HERE, text("file"), zeros(32), 0);
        setxattr(text("file"), text("user.one"), data(), 16, 0);
        lsetxattr(text("file"), text("user.one"), data(), 16, 0);
        getxattr(text("file"), text("user.one"), OUT, 16);
        lgetxattr(text("file"), text("user.one"), OUT, 16);
        listxattr(text("file"), OUT, 100);
        llistxattr(text("file"), OUT, 100);
        removexattr(text("file"), text("user.none"));
        lremovexattr(text("file"), text("user.none"));
        setxattrat(HERE, text("file"), 0, text("user.one"), longs(&[0, 16]).link(0, data()), 16);
        getxattrat(HERE, text("file"), 0, text("user.one"), longs(&[OUTPUT, 16]), 16);
        listxattrat(HERE, text("file"), 0, OUT, 100);
        removexattrat(HERE, text("file"), 0, text("user.none"));
        file_getattr(HERE, text("file"), OUT, 24, 0);
        name_to_handle_at(HERE, text("file"), zeros(8), OUT, 0);
        open_by_handle_at(25, words(&[8, 1, 0, 0]), 0);
        inotify_add_watch(22, text("file"), 2);
        umount2(text("dir"), 0);
        open_tree(HERE, text("dir"), 0);
        move_mount(HERE, text("dir"), HERE, text("dir"), 0);
        fsopen(text("nofilesystem"), 0);
        memfd_create(text("name"), 0);
        statmount(longs(&[24, u64::MAX, 0]), OUT, 512, 0);
        listmount(longs(&[24, u64::MAX, 0]), OUT, 4, 0);
        mq_unlink(text("none"));
        mq_open(text("none"), 0, 0, zeros(64));
        execve(text("/bin/true"), strings("true", "one"), strings("A=1", "B=2"));
        execveat(HERE, text("/bin/true"), strings("true", "one"), strings("A=1", "B=2"), 0);
    }
}

fn files() -> Vec<Row> {
    /// `struct flock`: a read lock of all.
    const LOCK: usize = 32;
    let interface = || Object::new([b"lo".to_vec(), vec![0; 38]].concat());
    rows! {
        write(11, data(), 16);
        write(17, data(), 16);
        pwrite64(17, data(), 16, 0);
        writev(11, vector(), 1);
        pwritev(17, vector(), 1, 0, 0);
        pwritev2(17, vector(), 1, 0, 0, 0);
        vmsplice(11, vector(), 1, 0);
        readv(10, output_vector(), 1);
        preadv(17, output_vector(), 1, 0, 0);
        preadv2(17, output_vector(), 1, 0, 0, 0);
        read(10, OUT, 4);
        fsetxattr(17, text("user.one"), data(), 16, 0);
        fgetxattr(17, text("user.one"), OUT, 16);
        fremovexattr(17, text("user.none"));
        sendfile(11, 17, zeros(8), 4);
        splice(17, zeros(8), 11, 0, 4, 0);
        copy_file_range(17, zeros(8), 23, zeros(8), 4, 0);
        cachestat(17, zeros(16), OUT, 0);
        fcntl(17, 6, zeros(LOCK));
        fcntl(17, 7, zeros(LOCK));
        fcntl(17, 5, zeros(LOCK));
        fcntl(17, 37, zeros(LOCK));
        fcntl(17, 36, zeros(LOCK));
        fcntl(10, 15, zeros(8));
        fcntl(17, 1036, zeros(8));
        fcntl(17, 1, 0);
        ioctl(10, 0x5421, words(&[1]));
        ioctl(10, 0x5452, words(&[0]));
        ioctl(20, 0x5402, zeros(36));
        ioctl(20, 0x5404, zeros(36));
        ioctl(20, 0x5406, zeros(18));
        ioctl(20, 0x402c_542b, zeros(44));
        ioctl(20, 0x5414, zeros(8));
        ioctl(19, 0x5420, words(&[0]));
        ioctl(19, 0x4004_5431, words(&[0]));
        ioctl(20, 0x5423, words(&[0]));
        ioctl(14, 0x8913, interface());
        ioctl(14, 0x8921, interface());
        ioctl(14, 0x8912, longs(&[64, OUTPUT]));
        ioctl(14, 0x8901, words(&[0]));
        ioctl(17, 0x4008_6602, zeros(4));
    }
}

fn sockets(port: u16) -> Vec<Row> {
    let received = longs(&[0, 0, 0, 1, 0, 0, 0, 0]).link(16, output_vector()).with_room(64);
    rows! {
        connect(14, address(port), 16);
        bind(21, address(0), 16);
        sendto(14, data(), 16, 0, address(port), 16);
        sendto(13, data(), 16, 0, 0, 0);
        sendmsg(14, addressed(port), 0);
        sendmsg(13, passing(), 0);
        sendmmsg(14, addressed_of_many(port), 1, 0);
        recvmsg(12, receiving(), 0x40);
        recvmmsg(12, received, 1, 0x40, 0);
        recvfrom(14, OUT, 10, 0, OUT, words(&[16]));
        recvfrom(14, OUT, 10, 0, 0, words(&[16]));
        accept(26, OUT, words(&[16]));
        accept(26, 0, words(&[16]));
        accept4(26, OUT, words(&[16]), 0);
        getsockname(14, OUT, words(&[16]));
        getpeername(12, OUT, words(&[16]));
        setsockopt(14, 1, 2, words(&[1]), 4);
        getsockopt(14, 1, 2, OUT, words(&[4]));
    }
}

fn waiting(set: i64, queue: i64) -> Vec<Row> {
    let mask = || zeros(8);
    let time = || zeros(16);
    let pack = || longs(&[0, 8]).link(0, zeros(8));
    let waited = || longs(&[1, 0, 2]).link(8, words(&[0]).aligned(4));
    rows! {
        poll(longs(&[10 | 1 << 32, 11 | 4 << 32]), 2, 0);
        ppoll(longs(&[10 | 1 << 32]), 1, time(), mask(), 8);
        select(64, mask(), mask(), mask(), time());
        pselect6(64, mask(), mask(), mask(), time(), pack());
        epoll_ctl(15, 1, 10, zeros(12));
        epoll_ctl(15, 2, 10, zeros(12));
        epoll_pwait(15, OUT, 1, 0, mask(), 8);
        epoll_pwait2(15, OUT, 1, time(), mask(), 8);
        futex(words(&[0]).aligned(4), 0, 1, time());
        futex(words(&[0]).aligned(4), 9, 1, time(), 0, -1);
        futex(words(&[0]).aligned(4), 6 | 128, 0, time());
        futex(words(&[0]).aligned(4), 4 | 128, 1, 1, words(&[0]).aligned(4), 5);
        futex_waitv(waited(), 1, 0, time(), 1);
        futex_wait(words(&[0]).aligned(4), 1, 0xffff_ffff, 2, time(), 1);
        semop(set, zeros(6), 1);
        semtimedop(set, zeros(6), 1, time());
        semctl(set, 0, 1, zeros(104));
        msgctl(queue, 1, zeros(120));
        msgsnd(queue, longs(&[1, 0]), 8, 0o4000);
        nanosleep(time(), 0);
        clock_nanosleep(1, 0, time(), 0);
        setitimer(1, zeros(32), 0);
        timer_create(1, words(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), OUT);
        timerfd_settime(16, 0, zeros(32), 0);
        adjtimex(zeros(208));
        clock_adjtime(0, zeros(208));
        rt_sigaction(10, zeros(32), 0, 8);
        rt_sigprocmask(0, mask(), 0, 8);
        rt_sigtimedwait(mask(), 0, time(), 8);
        rt_sigsuspend(mask(), 8);
        rt_sigqueueinfo(MYSELF, 0, words(&[0, 0, -1_i32 as u32, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        rt_tgsigqueueinfo(MYSELF, MYSELF, 0, words(&[0, 0, -1_i32 as u32, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        sigaltstack(longs(&[0, 2, 0]), 0);
        signalfd(-1, mask(), 8);
        signalfd4(-1, mask(), 8, 0);
    }
}

fn processes() -> Vec<Row> {
    let filter = || words(&[1, 0, 0, 0]).link(8, words(&[6, 0x7fff_0000]));
    rows! {
        setgroups(1, words(&[0]));
        capget(words(&[0x2008_0522, 0]), OUT);
        capset(words(&[0x2008_0522, 0]), zeros(24));
        sched_setparam(0, words(&[0]));
        sched_setscheduler(0, 0, words(&[0]));
        sched_setattr(0, Object::new([vec![48], vec![0; 47]].concat()), 0);
        sched_setaffinity(0, 8, longs(&[1]));
        setrlimit(7, longs(&[256, 256]));
        prlimit64(0, 7, longs(&[256, 256]), 0);
        prctl(15, text("short"));
        prctl(15, text("a name that is longer than it may be"));
        prctl(22, 2, filter());
        seccomp(1, 0, filter());
        seccomp(2, 0, words(&[0x7fff_0000]));
        process_vm_readv(MYSELF, output_vector(), 1, longs(&[OUTPUT, 16]), 1, 0);
        process_vm_writev(MYSELF, vector(), 1, longs(&[OUTPUT, 16]), 1, 0);
        landlock_create_ruleset(longs(&[1]), 8, 0);
        modify_ldt(1, zeros(16), 16);
        set_mempolicy(2, longs(&[1]), 65);
        mbind(OUT & !0xfff, 4096, 2, longs(&[1]), 65, 0);
        move_pages(0, 1, longs(&[OUTPUT]), words(&[0]), OUT, 0);
        migrate_pages(MYSELF, 65, longs(&[1]), longs(&[1]));
        lsm_list_modules(OUT, words(&[64]), 0);
        getgroups(0, 0);
    }
}
