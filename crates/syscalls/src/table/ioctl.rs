//! `ioctl`. Newer requests say in their number whether they write and how much; older ones, and some
//! that lie, are listed.
//!
//! Of a request that is not listed the number is believed if it belongs to a family whose numbers are
//! honest and says that the kernel only writes: then the kernel has read no pointer from the argument
//! that it could write to besides. What both reads and writes, or only reads, may hold such pointers
//! and is unknown.

use crate::call::{self, Call};
use crate::reads::Reading;
use crate::row::Part::Fixed;
use crate::row::{Row, Take, refused, sorted};
use crate::{Before, Known, Peek};

system_calls! {
    16 ioctl(Fd, Flags, Address),
        writes Row::select(1, 0xffff_ffff, REQUESTS, &OTHERS);
}

const BYTE: Row = Row::writes(&[Fixed(2, 1)]);
const SHORT: Row = Row::writes(&[Fixed(2, 2)]);
const INT: Row = Row::writes(&[Fixed(2, 4)]);
const LONG: Row = Row::writes(&[Fixed(2, 8)]);
const PAIR: Row = Row::writes(&[Fixed(2, 16)]);
const TERMIOS: Row = Row::writes(&[Fixed(2, 36)]);
const INTERFACE: Row = Row::writes(&[Fixed(2, 40)]);
/// `struct ifreq` names an interface, and is told about it.
const NAMED_INTERFACE: Row = INTERFACE.taking(&[Take::Bytes(2, 40)]);
const NOTHING: Row = Row::NOTHING;
/// A request to a network card. It takes the name of its interface; of the request itself, its command.
const ETHERNET: Row = Row::around(before_ethernet, ethernet).taking(&[Take::Bytes(2, 40)]);
const OTHERS: Row = Row::after(by_number).taking(&[Take::Rule(by_number_reads)]);

/// A request that takes so many bytes and writes nothing.
const fn takes<const BYTES: u64>() -> Row {
    Row::takes(const { &[Take::Bytes(2, BYTES)] })
}

const REQUESTS: &[(u64, Row)] = &sorted([
    // Terminals.
    (0x5401, TERMIOS),                                                    // TCGETS
    (0x5402, takes::<36>()),                                              // TCSETS
    (0x5403, takes::<36>()),                                              // TCSETSW
    (0x5404, takes::<36>()),                                              // TCSETSF
    (0x5405, Row::writes(&[Fixed(2, 18)])),                               // TCGETA
    (0x5406, takes::<18>()),                                              // TCSETA
    (0x5407, takes::<18>()),                                              // TCSETAW
    (0x5408, takes::<18>()),                                              // TCSETAF
    (0x5409, NOTHING),                                                    // TCSBRK
    (0x540a, NOTHING),                                                    // TCXONC
    (0x540b, NOTHING),                                                    // TCFLSH
    (0x540c, NOTHING),                                                    // TIOCEXCL
    (0x540d, NOTHING),                                                    // TIOCNXCL
    (0x540e, NOTHING),                                                    // TIOCSCTTY
    (0x540f, INT),                                                        // TIOCGPGRP
    (0x5410, takes::<4>()),                                               // TIOCSPGRP
    (0x5411, INT),                                                        // TIOCOUTQ, SIOCOUTQ
    (0x5412, takes::<1>()),                                               // TIOCSTI
    (0x5413, LONG),                                                       // TIOCGWINSZ
    (0x5414, takes::<8>()),                                               // TIOCSWINSZ
    (0x5415, INT),                                                        // TIOCMGET
    (0x5416, takes::<4>()),                                               // TIOCMBIS
    (0x5417, takes::<4>()),                                               // TIOCMBIC
    (0x5418, takes::<4>()),                                               // TIOCMSET
    (0x5419, INT),                                                        // TIOCGSOFTCAR
    (0x541a, takes::<4>()),                                               // TIOCSSOFTCAR
    (0x541b, INT),                          // FIONREAD, TIOCINQ, SIOCINQ
    (0x541d, NOTHING),                      // TIOCCONS
    (0x541e, Row::writes(&[Fixed(2, 72)])), // TIOCGSERIAL
    (0x541f, takes::<72>()),                // TIOCSSERIAL
    (0x5420, takes::<4>()),                 // TIOCPKT
    (0x5421, takes::<4>()),                 // FIONBIO
    (0x5422, NOTHING),                      // TIOCNOTTY
    (0x5423, takes::<4>()),                 // TIOCSETD
    (0x5424, INT),                          // TIOCGETD
    (0x5425, NOTHING),                      // TCSBRKP
    (0x5427, NOTHING),                      // TIOCSBRK
    (0x5428, NOTHING),                      // TIOCCBRK
    (0x5429, INT),                          // TIOCGSID
    (0x802c_542a, Row::CODED),              // TCGETS2
    (0x402c_542b, Row::CODED),              // TCSETS2
    (0x402c_542c, Row::CODED),              // TCSETSW2
    (0x402c_542d, Row::CODED),              // TCSETSF2
    (0x542e, Row::writes(&[Fixed(2, 32)])), // TIOCGRS485
    (0x542f, Row::writes(&[Fixed(2, 32)]).taking(&[Take::Bytes(2, 32)])), // TIOCSRS485, and what it made of it
    (0x8004_5430, Row::CODED),                                            // TIOCGPTN
    (0x4004_5431, Row::CODED),                                            // TIOCSPTLCK
    (0x8004_5432, Row::CODED),                                            // TIOCGDEV
    (0x4004_5436, NOTHING),                                               // TIOCSIG
    (0x5437, NOTHING),                                                    // TIOCVHANGUP
    (0x8004_5438, Row::CODED),                                            // TIOCGPKT
    (0x8004_5439, Row::CODED),                                            // TIOCGPTLCK
    (0x8004_5440, Row::CODED),                                            // TIOCGEXCL
    (0x5441, NOTHING),                                                    // TIOCGPTPEER
    (0x8028_5442, Row::CODED),                                            // TIOCGISO7816
    (0xc028_5443, Row::CODED),                                            // TIOCSISO7816
    (0x5450, NOTHING),                                                    // FIONCLEX
    (0x5451, NOTHING),                                                    // FIOCLEX
    (0x5452, takes::<4>()),                                               // FIOASYNC
    (0x5453, NOTHING),                                                    // TIOCSERCONFIG
    (0x5456, TERMIOS),                                                    // TIOCGLCKTRMIOS
    (0x5457, takes::<36>()),                                              // TIOCSLCKTRMIOS
    (0x5459, INT),                                                        // TIOCSERGETLSR
    (0x545c, NOTHING),                                                    // TIOCMIWAIT
    (0x545d, Row::writes(&[Fixed(2, 80)])),                               // TIOCGICOUNT
    (0x5460, LONG),                                                       // FIOQSIZE
    // The console.
    (0x4b31, BYTE),                             // KDGETLED
    (0x4b32, NOTHING),                          // KDSETLED
    (0x4b33, BYTE),                             // KDGKBTYPE
    (0x4b2f, NOTHING),                          // KIOCSOUND
    (0x4b30, NOTHING),                          // KDMKTONE
    (0x4b3a, NOTHING),                          // KDSETMODE
    (0x4b3b, INT),                              // KDGETMODE
    (0x4b44, INT),                              // KDGKBMODE
    (0x4b45, NOTHING),                          // KDSKBMODE
    (0x4b46, INT.taking(&[Take::Bytes(2, 4)])), // KDGKBENT
    (0x4b62, INT),                              // KDGKBMETA
    (0x4b64, BYTE),                             // KDGKBLED
    (0x4b65, NOTHING),                          // KDSKBLED
    (0x5600, INT),                              // VT_OPENQRY
    (0x5601, LONG),                             // VT_GETMODE
    (0x5602, takes::<8>()),                     // VT_SETMODE
    (0x5603, Row::writes(&[Fixed(2, 6)])),      // VT_GETSTATE
    (0x5605, NOTHING),                          // VT_RELDISP
    (0x5606, NOTHING),                          // VT_ACTIVATE
    (0x5607, NOTHING),                          // VT_WAITACTIVE
    (0x5608, NOTHING),                          // VT_DISALLOCATE
    // Sockets and network interfaces.
    (0x8901, takes::<4>()),    // FIOSETOWN
    (0x8902, takes::<4>()),    // SIOCSPGRP
    (0x8903, INT),             // FIOGETOWN
    (0x8904, INT),             // SIOCGPGRP
    (0x8905, INT),             // SIOCATMARK
    (0x8906, PAIR),            // SIOCGSTAMP
    (0x8907, PAIR),            // SIOCGSTAMPNS
    (0x8010_8906, Row::CODED), // SIOCGSTAMP_NEW
    (0x8010_8907, Row::CODED), // SIOCGSTAMPNS_NEW
    (0x890b, takes::<120>()),  // SIOCADDRT
    (0x890c, takes::<120>()),  // SIOCDELRT
    (0x8910, NAMED_INTERFACE), // SIOCGIFNAME
    (0x8911, NOTHING),         // SIOCSIFLINK
    (0x8912, Row::around(before_interfaces, interfaces).taking(&[Take::Bytes(2, 16)])), // SIOCGIFCONF
    (0x8913, NAMED_INTERFACE), // SIOCGIFFLAGS
    (0x8914, takes::<40>()),   // SIOCSIFFLAGS
    (0x8915, NAMED_INTERFACE), // SIOCGIFADDR
    (0x8916, takes::<40>()),   // SIOCSIFADDR
    (0x8917, NAMED_INTERFACE), // SIOCGIFDSTADDR
    (0x8918, takes::<40>()),   // SIOCSIFDSTADDR
    (0x8919, NAMED_INTERFACE), // SIOCGIFBRDADDR
    (0x891a, takes::<40>()),   // SIOCSIFBRDADDR
    (0x891b, NAMED_INTERFACE), // SIOCGIFNETMASK
    (0x891c, takes::<40>()),   // SIOCSIFNETMASK
    (0x891d, NAMED_INTERFACE), // SIOCGIFMETRIC
    (0x891e, takes::<40>()),   // SIOCSIFMETRIC
    (0x891f, NOTHING),         // SIOCGIFMEM, which no kernel answers
    (0x8921, NAMED_INTERFACE), // SIOCGIFMTU
    (0x8922, takes::<40>()),   // SIOCSIFMTU
    (0x8923, takes::<40>()),   // SIOCSIFNAME
    (0x8924, takes::<40>()),   // SIOCSIFHWADDR
    (0x8927, NAMED_INTERFACE), // SIOCGIFHWADDR
    (0x8929, NOTHING),         // SIOCGIFSLAVE, which no kernel answers
    (0x8931, takes::<40>()),   // SIOCADDMULTI
    (0x8932, takes::<40>()),   // SIOCDELMULTI
    (0x8933, NAMED_INTERFACE), // SIOCGIFINDEX
    (0x8934, takes::<40>()),   // SIOCSIFPFLAGS
    (0x8935, NOTHING),         // SIOCGIFPFLAGS, which no kernel answers
    (0x8942, NAMED_INTERFACE), // SIOCGIFTXQLEN
    (0x8943, takes::<40>()),   // SIOCSIFTXQLEN
    (0x8946, ETHERNET),        // SIOCETHTOOL
    (0x8947, NAMED_INTERFACE), // SIOCGMIIPHY
    (0x8948, NAMED_INTERFACE), // SIOCGMIIREG
    (0x894b, INT),             // SIOCOUTQNSD
    (0x894c, NAMED_INTERFACE), // SIOCGSKNS, which makes a descriptor
    (0x8953, takes::<68>()),   // SIOCDARP
    (0x8954, Row::writes(&[Fixed(2, 68)]).taking(&[Take::Bytes(2, 68)])), // SIOCGARP
    (0x8955, takes::<68>()),   // SIOCSARP
    (0x8970, NAMED_INTERFACE), // SIOCGIFMAP
    (0x89a0, NOTHING),         // SIOCBRADDBR
    (0x89a1, NOTHING),         // SIOCBRDELBR
    (0x8b01, Row::writes(&[Fixed(2, 32)])), // SIOCGIWNAME
    // Tunnels; both write a whole `struct ifreq`, whatever their numbers say.
    (0x4004_54ca, NAMED_INTERFACE), // TUNSETIFF
    (0x8004_54d2, INTERFACE),       // TUNGETIFF
    (0x4004_54c8, NOTHING),         // TUNSETNOCSUM
    (0x4004_54cb, NOTHING),         // TUNSETPERSIST
    (0x4004_54cc, NOTHING),         // TUNSETOWNER
    (0x4004_54ce, NOTHING),         // TUNSETGROUP
    (0x8004_54cf, Row::CODED),      // TUNGETFEATURES
    (0x4004_54d0, NOTHING),         // TUNSETOFFLOAD
    // Files.
    (0x0001, INT.taking(&[Take::Bytes(2, 4)])), // FIBMAP
    (0x0002, INT),                              // FIGETBSZ
    (0x4004_9409, NOTHING),                     // FICLONE
    (0x4020_940d, Row::CODED),                  // FICLONERANGE
    (0xc018_9436, Row::after(deduplicated).taking(&[Take::Rule(deduplicated_reads)])), // FIDEDUPERANGE
    (0xc004_5877, NOTHING),                                                            // FIFREEZE
    (0xc004_5878, NOTHING),                                                            // FITHAW
    (0xc018_5879, Row::CODED),                                                         // FITRIM
    (0x8008_6601, Row::CODED),   // FS_IOC_GETFLAGS
    (0x4008_6602, takes::<4>()), // FS_IOC_SETFLAGS
    (0x8008_7601, Row::CODED),   // FS_IOC_GETVERSION
    (0x4008_7602, takes::<4>()), // FS_IOC_SETVERSION
    (0xc020_660b, Row::after(extents).taking(&[Take::Bytes(2, 32)])), // FS_IOC_FIEMAP
    (0x801c_581f, Row::CODED),   // FS_IOC_FSGETXATTR
    (0x401c_5820, Row::CODED),   // FS_IOC_FSSETXATTR
    (0x8100_9431, Row::CODED),   // FS_IOC_GETFSLABEL
    (0x4100_9432, Row::CODED),   // FS_IOC_SETFSLABEL
    (0x400c_6613, Row::CODED),   // FS_IOC_SET_ENCRYPTION_POLICY
    (0x4010_6614, PAIR),         // FS_IOC_GET_ENCRYPTION_PWSALT, whatever it says
    (0x400c_6615, Row::writes(&[Fixed(2, 12)])), // FS_IOC_GET_ENCRYPTION_POLICY, likewise
    (0xc009_6616, Row::after(encryption).taking(&[Take::Bytes(2, 8)])), // FS_IOC_GET_ENCRYPTION_POLICY_EX
    (0x4080_6685, Row::CODED),                                          // FS_IOC_ENABLE_VERITY
    (0xc004_6686, Row::after(verity).taking(&[Take::Bytes(2, 4)])),     // FS_IOC_MEASURE_VERITY
    // btrfs.
    (0x9408, NOTHING),         // BTRFS_IOC_SYNC
    (0x5000_940e, Row::CODED), // BTRFS_IOC_SUBVOL_CREATE
    (0x5000_940f, Row::CODED), // BTRFS_IOC_SNAP_DESTROY
    (0xd000_9411, Row::CODED), // BTRFS_IOC_TREE_SEARCH
    (0xd000_9412, Row::CODED), // BTRFS_IOC_INO_LOOKUP
    (0x4008_9416, Row::CODED), // BTRFS_IOC_WAIT_SYNC
    (0x5000_9417, Row::CODED), // BTRFS_IOC_SNAP_CREATE_V2
    (0x5000_9418, Row::CODED), // BTRFS_IOC_SUBVOL_CREATE_V2
    (0x4008_941a, Row::CODED), // BTRFS_IOC_SUBVOL_SETFLAGS
    (0xd000_941e, Row::CODED), // BTRFS_IOC_DEV_INFO
    // Disks.
    (0x0301, PAIR),                          // HDIO_GETGEO
    (0x030d, Row::writes(&[Fixed(2, 512)])), // HDIO_GET_IDENTITY
    (0x125d, takes::<4>()),                  // BLKROSET
    (0x125e, INT),                           // BLKROGET
    (0x125f, NOTHING),                       // BLKRRPART
    (0x1260, LONG),                          // BLKGETSIZE
    (0x1261, NOTHING),                       // BLKFLSBUF
    (0x1262, NOTHING),                       // BLKRASET
    (0x1263, LONG),                          // BLKRAGET
    (0x1264, NOTHING),                       // BLKFRASET
    (0x1265, LONG),                          // BLKFRAGET
    (0x1267, SHORT),                         // BLKSECTGET
    (0x1268, INT),                           // BLKSSZGET
    (0x1269, takes::<32>()),                 // BLKPG
    (0x4008_1271, takes::<4>()),             // BLKBSZSET
    (0x1277, takes::<16>()),                 // BLKDISCARD
    (0x1278, INT),                           // BLKIOMIN
    (0x1279, INT),                           // BLKIOOPT
    (0x127a, INT),                           // BLKALIGNOFF
    (0x127b, INT),                           // BLKPBSZGET
    (0x127c, INT),                           // BLKDISCARDZEROES
    (0x127d, takes::<16>()),                 // BLKSECDISCARD
    (0x127e, SHORT),                         // BLKROTATIONAL
    (0x127f, takes::<16>()),                 // BLKZEROOUT
    (0x2282, INT),                           // SG_GET_VERSION_NUM
    (0x5326, NOTHING),                       // CDROM_DRIVE_STATUS
    (0x5331, NOTHING),                       // CDROM_GET_CAPABILITY
    // Loop devices.
    (0x4c00, NOTHING),                       // LOOP_SET_FD
    (0x4c01, NOTHING),                       // LOOP_CLR_FD
    (0x4c02, takes::<168>()),                // LOOP_SET_STATUS
    (0x4c03, Row::writes(&[Fixed(2, 168)])), // LOOP_GET_STATUS
    (0x4c04, takes::<232>()),                // LOOP_SET_STATUS64
    (0x4c05, Row::writes(&[Fixed(2, 232)])), // LOOP_GET_STATUS64
    (0x4c06, NOTHING),                       // LOOP_CHANGE_FD
    (0x4c07, NOTHING),                       // LOOP_SET_CAPACITY
    (0x4c08, NOTHING),                       // LOOP_SET_DIRECT_IO
    (0x4c09, NOTHING),                       // LOOP_SET_BLOCK_SIZE
    (0x4c0a, takes::<304>()),                // LOOP_CONFIGURE
    (0x4c80, NOTHING),                       // LOOP_CTL_ADD
    (0x4c81, NOTHING),                       // LOOP_CTL_REMOVE
    (0x4c82, NOTHING),                       // LOOP_CTL_GET_FREE
    // Namespaces and processes. Some numbers claim a write, but their argument is no address.
    (0xb701, NOTHING),         // NS_GET_USERNS
    (0xb702, NOTHING),         // NS_GET_PARENT
    (0xb703, NOTHING),         // NS_GET_NSTYPE
    (0xb704, INT),             // NS_GET_OWNER_UID
    (0x8004_b706, NOTHING),    // NS_GET_PID_FROM_PIDNS
    (0x8004_b707, NOTHING),    // NS_GET_TGID_FROM_PIDNS
    (0x8004_b708, NOTHING),    // NS_GET_PID_IN_PIDNS
    (0x8004_b709, NOTHING),    // NS_GET_TGID_IN_PIDNS
    (0xff01, NOTHING),         // PIDFD_GET_CGROUP_NAMESPACE
    (0xff02, NOTHING),         // PIDFD_GET_IPC_NAMESPACE
    (0xff03, NOTHING),         // PIDFD_GET_MNT_NAMESPACE
    (0xff04, NOTHING),         // PIDFD_GET_NET_NAMESPACE
    (0xff05, NOTHING),         // PIDFD_GET_PID_NAMESPACE
    (0xff06, NOTHING),         // PIDFD_GET_PID_FOR_CHILDREN_NAMESPACE
    (0xff09, NOTHING),         // PIDFD_GET_USER_NAMESPACE
    (0xff0a, NOTHING),         // PIDFD_GET_UTS_NAMESPACE
    (0x4008_8a01, Row::CODED), // EPIOCSPARAMS
    // Input devices. This number says that 16 bytes are written, but among them is a pointer.
    (0x8010_4592, Row::unknown("the kernel writes where the argument points to")), // EVIOCGMASK
    // Randomness and the clock.
    (0x4004_5201, Row::CODED),                         // RNDADDTOENTCNT
    (0x4008_5203, Row::takes(&[Take::Rule(entropy)])), // RNDADDENTROPY
    (0x5204, NOTHING),                                 // RNDZAPENTCNT
    (0x7001, NOTHING),                                 // RTC_AIE_ON
    (0x7002, NOTHING),                                 // RTC_AIE_OFF
    (0x7003, NOTHING),                                 // RTC_UIE_ON
    (0x7004, NOTHING),                                 // RTC_UIE_OFF
    (0x4024_700a, Row::CODED),                         // RTC_SET_TIME
]);

/// The families whose numbers say truly what the kernel writes, but for what is listed: terminals,
/// files and file systems, disks, randomness, clocks, input devices, namespaces, processes, `epoll`.
const HONEST: &[u8] = b"TfvXrREHjp\x12\x15\x89\x8a\x94\xb7\xff";

/// A request that is not listed.
fn by_number(call: &mut Call<'_>) -> Known {
    const ONLY_WRITES: u64 = 2;
    let request = call.arguments[1];
    let family = (request >> 8) as u8;
    if request >> 30 & 3 == ONLY_WRITES && HONEST.contains(&family) {
        call.coded();
        return Known::Yes;
    }
    if refused(call.answer) { Known::Yes } else { Known::NotInTable }
}

/// What a request that is not listed takes.
fn by_number_reads(reading: &mut Reading<'_>) {
    let family = (reading.arguments[1] >> 8) as u8;
    match HONEST.contains(&family) {
        true => reading.coded(),
        false => reading.known = Known::NotInTable,
    }
}

/// `struct ifconf`: a length, and where interfaces are listed.
fn before_interfaces(a: &[u64; 6], memory: &dyn Peek, before: &mut Before) {
    before.words = [call::word(memory, a[2]), call::long(memory, a[2].wrapping_add(8))];
}

fn interfaces(call: &mut Call<'_>) -> Known {
    if call.wrote() {
        let argument = call.arguments[2];
        let [room, list] = call.before.words;
        let told = if call.failed() { room } else { call.word(argument).min(room) };
        call.put(list, told);
        call.put(argument, 4);
    }
    Known::Yes
}

/// `struct ifreq` with a pointer to a request of its own, which begins with its command.
fn before_ethernet(a: &[u64; 6], memory: &dyn Peek, before: &mut Before) {
    let request = call::long(memory, a[2].wrapping_add(16));
    before.words = [call::word(memory, request), request];
}

fn ethernet(call: &mut Call<'_>) -> Known {
    /// `struct ethtool_link_settings`, behind which stand three masks of as many words as it says.
    const SETTINGS: u64 = 48;
    let [command, request] = call.before.words;
    let length = match command {
        0x01 => 44,                                                 // ETHTOOL_GSET
        0x03 => 196,                                                // ETHTOOL_GDRVINFO
        0x05 => 20,                                                 // ETHTOOL_GWOL
        0x07 | 0x0a | 0x14 | 0x16 | 0x18 | 0x1e | 0x21 | 0x23 => 8, // one value each
        0x25 | 0x27 | 0x2b => 8,                                    // and these
        0x0e => 92,                                                 // ETHTOOL_GCOALESCE
        0x10 | 0x3c => 36,                                          // ETHTOOL_GRINGPARAM, GCHANNELS
        0x12 => 16,                                                 // ETHTOOL_GPAUSEPARAM
        0x41 => 44,                                                 // ETHTOOL_GET_TS_INFO
        0x4c => SETTINGS + 12 * mask_words(call, request),          // ETHTOOL_GLINKSETTINGS
        _ if refused(call.answer) => 0,
        _ => return Known::NotInTable,
    };
    if call.wrote() {
        call.put(request, length);
    }
    Known::Yes
}

/// A negative number of words says how many are wanted, and none follow.
fn mask_words(call: &Call<'_>, settings: u64) -> u64 {
    let words = (call.word(settings.wrapping_add(12)) >> 24) as u8;
    if words < 0x80 { u64::from(words) } else { 0 }
}

/// `struct fiemap` and behind it as many extents as it says; its head is written even on errors.
fn extents(call: &mut Call<'_>) -> Known {
    const HEAD: u64 = 32;
    const EXTENT: u64 = 56;
    let map = call.arguments[2];
    let room = call.word(map.wrapping_add(24));
    let count = if call.failed() { room } else { call.word(map.wrapping_add(20)).min(room) };
    call.put(map, HEAD + EXTENT * count);
    Known::Yes
}

/// `struct file_dedupe_range` and behind it what became of each range.
fn deduplicated(call: &mut Call<'_>) -> Known {
    const HEAD: u64 = 24;
    const RANGE: u64 = 32;
    if call.wrote() {
        let argument = call.arguments[2];
        let count = call.word(argument.wrapping_add(16)) & 0xffff;
        call.put(argument, HEAD + RANGE * count);
    }
    Known::Yes
}

/// A size, and so many bytes behind it.
fn encryption(call: &mut Call<'_>) -> Known {
    const LARGEST: u64 = 24;
    if call.wrote() {
        let argument = call.arguments[2];
        call.put(argument, 8 + call.word(argument).min(LARGEST));
    }
    Known::Yes
}

/// An algorithm, a size, and so many bytes behind them.
fn verity(call: &mut Call<'_>) -> Known {
    const LARGEST: u64 = 64;
    if call.wrote() {
        let argument = call.arguments[2];
        call.put(argument, 4 + (call.word(argument) >> 16).min(LARGEST));
    }
    Known::Yes
}

/// What each range is, behind the head.
fn deduplicated_reads(reading: &mut Reading<'_>) {
    const HEAD: u64 = 24;
    const RANGE: u64 = 32;
    let argument = reading.arguments[2];
    let count = reading.word(argument.wrapping_add(16)) & 0xffff;
    reading.parameters(argument, HEAD + RANGE * count);
}

/// A count of bits, a size, and so many bytes.
fn entropy(reading: &mut Reading<'_>) {
    let argument = reading.arguments[2];
    reading.parameters(argument, 8 + reading.word(argument.wrapping_add(4)));
}
