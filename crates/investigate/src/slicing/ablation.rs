//! What a slice would be without one of the things that make it precise: for measuring what each is
//! worth (docs/slicing.md has the figures).

use analyze::dependence::Trace;
use analyze::semantics::{Flow, Meaning, Parts, Side, Uses};
use base::Address;
use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind};
use std::sync::Arc;
use symbols::Program;

/// A source of precision that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ablation {
    /// Where indirect jumps were seen to lead
    Jumps,
    /// In which frames jumps out of calls landed
    NonLocalJumps,
    /// Passing saved registers by
    Saves,
    /// That `xor r,r` and its like use nothing
    Idioms,
    /// Following copies byte for byte
    Copies,
}

/// The most bytes of an instruction.
const LONGEST: usize = 15;

/// Makes a trace as coarse as it would be.
pub fn coarsen(trace: &mut Trace, program: &Program, ablation: Ablation) {
    match ablation {
        Ablation::Jumps => trace.jumps.clear(),
        Ablation::NonLocalJumps => trace.non_local_jumps.clear(),
        Ablation::Saves => {}
        Ablation::Idioms => {
            for known in &mut trace.blocks.statics {
                let mut code = [0; LONGEST];
                let code = &mut code[..usize::from(known.length).min(LONGEST)];
                if program.code_bytes(Address(known.pc), code)
                    && let Some(register) = idiom(code)
                {
                    known.meaning = Arc::new(using(&known.meaning, register));
                }
            }
        }
        Ablation::Copies => {
            for known in &mut trace.blocks.statics {
                known.meaning = Arc::new(mixing(&known.meaning));
            }
        }
    }
}

/// The register that an instruction makes zero by computing with itself.
fn idiom(code: &[u8]) -> Option<Parts> {
    let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
    let computes = matches!(
        instruction.mnemonic(),
        Mnemonic::Xor | Mnemonic::Sub | Mnemonic::Pxor | Mnemonic::Xorps | Mnemonic::Xorpd
    );
    let same = instruction.op_count() == 2
        && instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Register
        && instruction.op0_register() == instruction.op1_register();
    (computes && same).then(|| Parts::of(instruction.op0_register()))
}

/// The same with all that it makes made from these parts.
fn using(meaning: &Meaning, register: Parts) -> Meaning {
    let mut meaning = meaning.clone();
    for flow in &mut meaning.flows {
        if let Flow::Make { uses, .. } = flow {
            uses.values |= register;
        }
    }
    meaning
}

/// The same with every byte of a copy made from all bytes.
fn mixing(meaning: &Meaning) -> Meaning {
    let mut meaning = meaning.clone();
    for flow in &mut meaning.flows {
        let Flow::Copy { to, from } = *flow else { continue };
        let read = matches!(from.side, Side::Memory(_)).then_some(from);
        let uses =
            Uses { values: from.parts(), reads: read.into_iter().collect(), ..Uses::default() };
        *flow = Flow::Make {
            parts: to.parts(),
            write: matches!(to.side, Side::Memory(_)).then_some(to),
            uses,
            how: analyze::semantics::How::Combined,
        };
    }
    meaning
}
