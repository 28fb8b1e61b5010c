//! The registers as gdb numbers them: general, x87, SSE, AVX, segments; and the description that says so.

use gdbstub::arch::{Arch, Registers};
use investigate::debugging::bytecode::GENERAL;
use recording::log::ThreadData;
use std::fmt::Write;
use std::sync::LazyLock;

/// x86-64 under Linux, with AVX.
pub enum Amd64 {}

impl Arch for Amd64 {
    type Usize = u64;
    type Registers = Values;
    type BreakpointKind = usize;
    type RegId = ();

    fn target_description_xml() -> Option<&'static str> {
        static DESCRIPTION: LazyLock<String> = LazyLock::new(description);
        Some(&DESCRIPTION)
    }
}

/// The values of all registers, in the order of the description.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    bytes: Vec<u8>,
    pc: u64,
}

impl Registers for Values {
    type ProgramCounter = u64;

    fn pc(&self) -> u64 {
        self.pc
    }

    fn gdb_serialize(&self, mut write: impl FnMut(Option<u8>)) {
        self.bytes.iter().for_each(|byte| write(Some(*byte)));
    }

    fn gdb_deserialize(&mut self, bytes: &[u8]) -> Result<(), ()> {
        self.bytes = bytes.to_vec();
        Ok(())
    }
}

const GENERAL_NAMES: [&str; 16] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];
const SEGMENT_NAMES: [&str; 6] = ["cs", "ss", "ds", "es", "fs", "gs"];
/// What Linux gives a program in the segment registers.
const SEGMENTS: [u32; 6] = [0x33, 0x2b, 0, 0, 0, 0];
const X87_NAMES: [&str; 8] = ["fctrl", "fstat", "ftag", "fiseg", "fioff", "foseg", "fooff", "fop"];
const FLAGS: [(&str, u32); 17] = [
    ("CF", 0),
    ("", 1),
    ("PF", 2),
    ("AF", 4),
    ("ZF", 6),
    ("SF", 7),
    ("TF", 8),
    ("IF", 9),
    ("DF", 10),
    ("OF", 11),
    ("NT", 14),
    ("RF", 16),
    ("VM", 17),
    ("AC", 18),
    ("VIF", 19),
    ("VIP", 20),
    ("ID", 21),
];

/// Places in what XSAVE stores.
mod stored {
    pub const TAGS: usize = 4;
    pub const X87_STACK: usize = 32;
    pub const XMM: usize = 160;
    pub const MXCSR: usize = 24;
    pub const HEADER: usize = 512;
    pub const YMM_HIGH: usize = 576;
    /// Bit of the header that says that the upper halves are not all zero.
    pub const HAS_AVX: u8 = 4;
}

impl Values {
    /// Those of a thread.
    pub fn of(thread: &ThreadData) -> Self {
        let mut bytes = Vec::new();
        for number in GENERAL {
            bytes.extend(thread.general[number].to_le_bytes());
        }
        bytes.extend(thread.pc.to_le_bytes());
        bytes.extend((thread.flags as u32).to_le_bytes());
        SEGMENTS.iter().for_each(|segment| bytes.extend(segment.to_le_bytes()));
        let vector = Stored(&thread.vector);
        for register in 0..8 {
            bytes.extend(vector.part::<10>(stored::X87_STACK + 16 * register));
        }
        vector.x87_control().iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        for register in 0..16 {
            bytes.extend(vector.part::<16>(stored::XMM + 16 * register));
        }
        bytes.extend(vector.part::<4>(stored::MXCSR));
        // No system call is to be started anew.
        bytes.extend(u64::MAX.to_le_bytes());
        thread.bases.iter().for_each(|base| bytes.extend(base.to_le_bytes()));
        let avx = vector.part::<1>(stored::HEADER)[0] & stored::HAS_AVX != 0;
        for register in 0..16 {
            let high = vector.part::<16>(stored::YMM_HIGH + 16 * register);
            bytes.extend(if avx { high } else { [0; 16] });
        }
        Self { bytes, pc: thread.pc }
    }
}

impl Values {
    /// The general registers by the processor's numbers, and the next instruction, as a client has sent them.
    pub fn general(&self) -> Option<([u64; 16], u64)> {
        let word = |index: usize| {
            let bytes = self.bytes.get(8 * index..8 * index + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let mut general = [0; 16];
        for (index, number) in GENERAL.into_iter().enumerate() {
            general[number] = word(index)?;
        }
        Some((general, word(GENERAL.len())?))
    }

    /// Whether everything behind the flags is the same.
    pub fn has_vectors_of(&self, other: &Self) -> bool {
        const BEFORE: usize = 8 * (GENERAL.len() + 1) + 4;
        self.bytes.get(BEFORE..) == other.bytes.get(BEFORE..)
    }
}

/// What XSAVE stored; zeros where it did not.
struct Stored<'a>(&'a [u8]);

impl Stored<'_> {
    fn part<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0.get(at..at + N).and_then(|part| part.try_into().ok()).unwrap_or([0; N])
    }

    /// The x87's control registers, as gdb has them.
    fn x87_control(&self) -> [u32; 8] {
        let half = |at: usize| u32::from(u16::from_le_bytes(self.part(at)));
        let word = |at: usize| u32::from_le_bytes(self.part(at));
        // XSAVE keeps one bit for each register, in use or not; gdb wants the processor's two.
        let used = self.part::<1>(stored::TAGS)[0];
        let tag = |register: u32| if used & 1 << register == 0 { 3 << (2 * register) } else { 0 };
        let tags = (0..8).fold(0, |tags, register| tags | tag(register));
        [half(0), half(2), tags, half(12), word(8), half(20), word(16), half(6)]
    }
}

fn description() -> String {
    let mut xml = String::from(
        "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target>\
         <architecture>i386:x86-64</architecture><osabi>GNU/Linux</osabi>",
    );
    let mut feature = |name: &str, types: &str, registers: &[(String, u32, &str)]| {
        let _ = write!(xml, "<feature name=\"org.gnu.gdb.i386.{name}\">{types}");
        for (name, bits, kind) in registers {
            let _ = write!(xml, "<reg name=\"{name}\" bitsize=\"{bits}\" type=\"{kind}\"/>");
        }
        xml += "</feature>";
    };
    feature("core", &flags(), &core_registers());
    let mut sse = numbered("xmm", 16, 128, "vec128");
    sse.push(("mxcsr".into(), 32, "int"));
    feature("sse", VECTORS, &sse);
    feature("linux", "", &[("orig_rax".into(), 64, "int")]);
    feature("segments", "", &[("fs_base".into(), 64, "int"), ("gs_base".into(), 64, "int")]);
    let high = (0..16).map(|number| (format!("ymm{number}h"), 128, "uint128"));
    feature("avx", "", &high.collect::<Vec<_>>());
    xml + "</target>"
}

fn numbered(
    name: &str,
    count: u32,
    bits: u32,
    kind: &'static str,
) -> Vec<(String, u32, &'static str)> {
    (0..count).map(|number| (format!("{name}{number}"), bits, kind)).collect()
}

fn core_registers() -> Vec<(String, u32, &'static str)> {
    let pointer = |name: &str| matches!(name, "rbp" | "rsp");
    let general = GENERAL_NAMES
        .iter()
        .map(|name| ((*name).to_owned(), 64, if pointer(name) { "data_ptr" } else { "int64" }));
    let mut all: Vec<_> = general.collect();
    all.push(("rip".into(), 64, "code_ptr"));
    all.push(("eflags".into(), 32, "i386_eflags"));
    all.extend(SEGMENT_NAMES.iter().map(|name| ((*name).to_owned(), 32, "int32")));
    all.extend(numbered("st", 8, 80, "i387_ext"));
    all.extend(X87_NAMES.iter().map(|name| ((*name).to_owned(), 32, "int")));
    all
}

fn flags() -> String {
    let fields = FLAGS.iter().fold(String::new(), |fields, (name, bit)| {
        fields + &format!("<field name=\"{name}\" start=\"{bit}\" end=\"{bit}\"/>")
    });
    format!("<flags id=\"i386_eflags\" size=\"4\">{fields}</flags>")
}

const VECTORS: &str = "<vector id=\"v4f\" type=\"ieee_single\" count=\"4\"/>\
    <vector id=\"v2d\" type=\"ieee_double\" count=\"2\"/>\
    <vector id=\"v16i8\" type=\"int8\" count=\"16\"/>\
    <vector id=\"v8i16\" type=\"int16\" count=\"8\"/>\
    <vector id=\"v4i32\" type=\"int32\" count=\"4\"/>\
    <vector id=\"v2i64\" type=\"int64\" count=\"2\"/>\
    <union id=\"vec128\"><field name=\"v4_float\" type=\"v4f\"/>\
    <field name=\"v2_double\" type=\"v2d\"/><field name=\"v16_int8\" type=\"v16i8\"/>\
    <field name=\"v8_int16\" type=\"v8i16\"/><field name=\"v4_int32\" type=\"v4i32\"/>\
    <field name=\"v2_int64\" type=\"v2i64\"/><field name=\"uint128\" type=\"uint128\"/></union>";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_has_as_many_bytes_as_the_values() {
        let text = Amd64::target_description_xml().expect("one");
        let bits = text.split("bitsize=\"").skip(1).map(|rest| {
            rest.split('"').next().and_then(|bits| bits.parse::<usize>().ok()).expect("a number")
        });
        let values = Values::of(&ThreadData::default());
        assert_eq!(bits.sum::<usize>(), 8 * values.bytes.len());
    }
}
