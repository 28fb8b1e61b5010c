//! Which instruction forms cases are drawn from: everything a program may execute in 64-bit mode
//! through AVX2 (with the VEX forms of GFNI, VAES and VPCLMULQDQ) that has one right answer.
//!
//! Left out, with the reason: what is privileged or reaches outside the program (system calls,
//! interrupts, port I/O, far transfers, segment loads); what answers differently each time
//! (time-stamp, random numbers, CPU identity); AVX-512 and newer state, which the engine hides;
//! and features this processor lacks.

use iced_x86::{Code, CpuidFeature, EncodingKind, Mnemonic, OpCodeOperandKind};
use std::collections::HashSet;

/// The features cases may use, and the name that Linux gives each in /proc/cpuinfo (empty:
/// every x86-64 processor has it).
const FEATURES: &[(CpuidFeature, &str)] = &[
    (CpuidFeature::INTEL8086, ""),
    (CpuidFeature::INTEL186, ""),
    (CpuidFeature::INTEL286, ""),
    (CpuidFeature::INTEL386, ""),
    (CpuidFeature::INTEL486, ""),
    (CpuidFeature::X64, ""),
    (CpuidFeature::FPU, ""),
    (CpuidFeature::FPU287, ""),
    (CpuidFeature::FPU387, ""),
    (CpuidFeature::CX8, ""),
    (CpuidFeature::CMOV, ""),
    (CpuidFeature::FXSR, ""),
    (CpuidFeature::MMX, ""),
    (CpuidFeature::SSE, ""),
    (CpuidFeature::SSE2, ""),
    (CpuidFeature::MULTIBYTENOP, ""),
    (CpuidFeature::PAUSE, ""),
    (CpuidFeature::PREFETCHW, "3dnowprefetch"),
    (CpuidFeature::CLFSH, "clflush"),
    (CpuidFeature::CLFLUSHOPT, "clflushopt"),
    (CpuidFeature::CLWB, "clwb"),
    (CpuidFeature::CLZERO, "clzero"),
    (CpuidFeature::CMPXCHG16B, "cx16"),
    (CpuidFeature::SSE3, "pni"),
    (CpuidFeature::SSSE3, "ssse3"),
    (CpuidFeature::SSE4_1, "sse4_1"),
    (CpuidFeature::SSE4_2, "sse4_2"),
    (CpuidFeature::SSE4A, "sse4a"),
    (CpuidFeature::POPCNT, "popcnt"),
    (CpuidFeature::LZCNT, "abm"),
    (CpuidFeature::MOVBE, "movbe"),
    (CpuidFeature::AES, "aes"),
    (CpuidFeature::PCLMULQDQ, "pclmulqdq"),
    (CpuidFeature::SHA, "sha_ni"),
    (CpuidFeature::AVX, "avx"),
    (CpuidFeature::AVX2, "avx2"),
    (CpuidFeature::F16C, "f16c"),
    (CpuidFeature::FMA, "fma"),
    (CpuidFeature::BMI1, "bmi1"),
    (CpuidFeature::BMI2, "bmi2"),
    (CpuidFeature::ADX, "adx"),
    (CpuidFeature::GFNI, "gfni"),
    (CpuidFeature::VAES, "vaes"),
    (CpuidFeature::VPCLMULQDQ, "vpclmulqdq"),
    (CpuidFeature::XSAVE, "xsave"),
    (CpuidFeature::XSAVEOPT, "xsaveopt"),
    (CpuidFeature::XSAVEC, "xsavec"),
    (CpuidFeature::FSGSBASE, "fsgsbase"),
    (CpuidFeature::CET_IBT, ""),
    (CpuidFeature::CPUID, ""),
];

/// Instructions without one right answer, or that reach outside the program.
const LEFT_OUT: &[Mnemonic] = &[
    Mnemonic::Cpuid,
    Mnemonic::Xgetbv,
    Mnemonic::Syscall,
    Mnemonic::Sysenter,
    Mnemonic::Int,
    Mnemonic::Int1,
    Mnemonic::Into,
    // Their answers are the machine's: UMIP makes the kernel invent some, LSL tells the CPU number.
    Mnemonic::Sgdt,
    Mnemonic::Sidt,
    Mnemonic::Sldt,
    Mnemonic::Str,
    Mnemonic::Smsw,
    Mnemonic::Lsl,
    Mnemonic::Lar,
    Mnemonic::Verr,
    Mnemonic::Verw,
    // Segment loads.
    Mnemonic::Lfs,
    Mnemonic::Lgs,
    Mnemonic::Lss,
    Mnemonic::Lds,
    Mnemonic::Les,
    // Far transfers that iced does not call far.
    Mnemonic::Retf,
    Mnemonic::Iret,
    Mnemonic::Iretd,
    Mnemonic::Iretq,
];

/// The forms that cases are drawn from.
#[derive(Clone, Debug)]
pub struct Forms(Vec<Code>);

impl Forms {
    /// All forms that this machine can execute.
    ///
    /// # Errors
    /// When /proc/cpuinfo cannot be read.
    pub fn of_this_machine() -> std::io::Result<Self> {
        let text = std::fs::read_to_string("/proc/cpuinfo")?;
        let flags = text.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
        Ok(Self::with_flags(&flags.split_whitespace().collect()))
    }

    /// All forms that a processor with these flags (as /proc/cpuinfo names them) can execute.
    #[must_use]
    pub fn with_flags(flags: &HashSet<&str>) -> Self {
        let present: HashSet<CpuidFeature> = FEATURES
            .iter()
            .filter(|(_, flag)| flag.is_empty() || flags.contains(flag))
            .map(|(feature, _)| *feature)
            .collect();
        Self(Code::values().filter(|code| is_wanted(*code, &present)).collect())
    }

    /// Only the forms whose name (such as `VPGATHERDD` or `ADD_R64_RM64`) contains `part`.
    #[must_use]
    pub fn named(self, part: &str) -> Self {
        Self(self.0.into_iter().filter(|code| is_named(*code, part)).collect())
    }

    /// Only the forms whose name does not contain `part`.
    #[must_use]
    pub fn without(self, part: &str) -> Self {
        Self(self.0.into_iter().filter(|code| !is_named(*code, part)).collect())
    }

    /// The forms, in iced's order.
    #[must_use]
    pub fn codes(&self) -> &[Code] {
        &self.0
    }
}

fn is_named(code: Code, part: &str) -> bool {
    format!("{code:?}").to_lowercase().contains(&part.to_lowercase())
}

fn is_wanted(code: Code, present: &HashSet<CpuidFeature>) -> bool {
    let form = code.op_code();
    form.is_instruction()
        && form.mode64()
        && matches!(form.encoding(), EncodingKind::Legacy | EncodingKind::VEX)
        && !form.is_reserved_nop()
        && !form.is_privileged()
        && !form.is_input_output()
        && !form.fwait()
        && !is_far_or_16_bit(code)
        && code.cpuid_features().iter().all(|feature| present.contains(feature))
        && !LEFT_OUT.contains(&code.mnemonic())
        && !loads_a_segment(code)
        && (0..form.op_count()).all(|operand| is_ordinary(form.op_kind(operand)))
}

/// Far transfers, and near ones with a 16-bit target, which mean one thing to Intel and another
/// to AMD. (The x87 forms with a leading WAIT are two instructions; both are drawn.)
fn is_far_or_16_bit(code: Code) -> bool {
    code.is_jmp_far_indirect()
        || code.is_call_far_indirect()
        || matches!(code, Code::Retnw | Code::Retnw_imm16 | Code::Call_rm16 | Code::Jmp_rm16)
        || code == Code::Ud0
}

/// POP FS and MOV to a segment register.
fn loads_a_segment(code: Code) -> bool {
    let first = code.op_code().op_kind(0);
    matches!(code.mnemonic(), Mnemonic::Pop | Mnemonic::Mov)
        && matches!(
            first,
            OpCodeOperandKind::seg_reg
                | OpCodeOperandKind::fs
                | OpCodeOperandKind::gs
                | OpCodeOperandKind::es
                | OpCodeOperandKind::ss
                | OpCodeOperandKind::ds
        )
}

/// Whether operands of this kind can be made at random. Branches of 16 bits mean one thing to
/// Intel and another to AMD.
fn is_ordinary(kind: OpCodeOperandKind) -> bool {
    use OpCodeOperandKind as K;
    !matches!(
        kind,
        K::farbr2_2
            | K::farbr4_2
            | K::br16_1
            | K::br16_2
            | K::br32_1
            | K::br32_4
            | K::xbegin_2
            | K::xbegin_4
            | K::brdisp_2
            | K::brdisp_4
            | K::cr_reg
            | K::dr_reg
            | K::tr_reg
            | K::mem_mib
            | K::mem_mpx
            | K::sibmem
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(flags: &[&str]) -> Forms {
        Forms::with_flags(&flags.iter().copied().collect())
    }

    #[test]
    fn features_the_processor_lacks_are_left_out() {
        let has = |forms: &Forms, code| forms.codes().contains(&code);
        let plain = forms(&[]);
        assert!(has(&plain, Code::Add_r64_rm64) && !has(&plain, Code::VEX_Vpaddd_ymm_ymm_ymmm256));
        assert!(has(&forms(&["avx2"]), Code::VEX_Vpaddd_ymm_ymm_ymmm256));
    }

    #[test]
    fn nothing_that_leaves_the_program_is_drawn() {
        let all = forms(&["avx", "avx2", "xsave", "fsgsbase", "rdrand"]);
        for code in [
            Code::Syscall,
            Code::Rdtsc,
            Code::Rdrand_r64,
            Code::Cpuid,
            Code::Int_imm8,
            Code::Hlt,
            Code::In_AL_DX,
            Code::Mov_Sreg_rm16,
            Code::Popq_FS,
            Code::Retfq,
            Code::Jmp_m1664,
            Code::Xbegin_rel32,
            Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32,
        ] {
            assert!(!all.codes().contains(&code), "{code:?}");
        }
    }
}
