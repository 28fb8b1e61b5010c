//! Call frame information: the rules (`.eh_frame`, `.debug_frame`) by which the caller's
//! registers follow from the callee's, applied for one step.

use crate::address::FileAddress;
use crate::debug_info::{Reader, reader};
use crate::image::{Bytes, Image};
use crate::registers::{Memory, Register, Registers};
use base::Address;
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EvaluationResult, RegisterRule,
    UnwindContext, UnwindSection, UnwindTableRow, Value,
};
use std::collections::BTreeMap;
use std::sync::OnceLock;

type Description = gimli::FrameDescriptionEntry<Reader>;
type Row = UnwindTableRow<usize>;

/// RSP, as call frame information numbers it.
const STACK_POINTER: u16 = 7;
/// Steps an expression may take before it is given up: real ones take a dozen.
const LONGEST_EXPRESSION: u32 = 10_000;
/// `rbx`, `rbp`, `r12` to `r15`: kept by callees unless a rule says where they were saved.
const CALLEE_SAVED: [u16; 6] = [3, 6, 12, 13, 14, 15];

/// The caller's state, as far as the rules tell.
pub(crate) struct Unwound {
    /// The canonical frame address of the callee.
    pub cfa: Address,
    /// The caller's registers.
    pub caller: Registers,
    /// Whether the callee is a signal trampoline, so that the caller was interrupted between
    /// two instructions instead of having made a call.
    pub signal: bool,
}

/// The rules of one module.
pub(crate) struct CallFrameInfo {
    bases: BaseAddresses,
    eh_frame: Option<EhFrame<Reader>>,
    header: Option<SearchTable>,
    debug_frame: Option<DebugFrame<Reader>>,
    eh_index: OnceLock<Index>,
    debug_index: OnceLock<Index>,
}

/// Start, end and section offset of every description, by start.
type Index = Vec<(u64, u64, usize)>;

impl CallFrameInfo {
    pub fn of(image: &Image, separate: Option<&Image>) -> Self {
        let address = |name| image.section(name).map_or(0, |section| section.address.0);
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(address(".eh_frame_hdr"))
            .set_eh_frame(address(".eh_frame"))
            .set_text(address(".text"))
            .set_got(address(".got"));
        let header = image
            .contents(".eh_frame_hdr")
            .and_then(|bytes| SearchTable::new(bytes, address(".eh_frame_hdr")));
        let debug_frame = image
            .contents(".debug_frame")
            .or_else(|| separate?.contents(".debug_frame"))
            .map(|bytes| DebugFrame::from(reader(bytes)));
        Self {
            eh_frame: image.contents(".eh_frame").map(|bytes| EhFrame::from(reader(bytes))),
            header,
            debug_frame,
            bases,
            eh_index: OnceLock::new(),
            debug_index: OnceLock::new(),
        }
    }

    /// The step out of the function that `address` is in; `None` without rules, or if what they
    /// need cannot be read.
    pub fn step(
        &self,
        address: FileAddress,
        bias: u64,
        registers: &Registers,
        memory: &dyn Memory,
    ) -> Option<Unwound> {
        let frame = Evaluator { bias, registers, memory };
        let mut context = UnwindContext::new();
        if let Some(section) = &self.eh_frame
            && let Some(description) = self.eh_description(section, address)
        {
            let row = description
                .unwind_info_for_address(section, &self.bases, &mut context, address.0)
                .ok()?;
            return frame.apply(section, &description, row);
        }
        let section = self.debug_frame.as_ref()?;
        let description = self.debug_description(section, address)?;
        let row = description
            .unwind_info_for_address(section, &self.bases, &mut context, address.0)
            .ok()?;
        frame.apply(section, &description, row)
    }

    /// How far above the stack pointer the frame's upper end is in the body of the function that `address` is in:
    /// where most of its code is. Nothing if that is counted from another register.
    pub fn stack_height(&self, address: FileAddress) -> Option<u64> {
        let section = self.eh_frame.as_ref()?;
        let description = self.eh_description(section, address)?;
        let mut context = UnwindContext::new();
        let mut rows = description.rows(section, &self.bases, &mut context).ok()?;
        let mut heights: BTreeMap<Option<i64>, u64> = BTreeMap::new();
        while let Some(row) = rows.next_row().ok()? {
            let height = match row.cfa() {
                CfaRule::RegisterAndOffset { register, offset } if register.0 == STACK_POINTER => {
                    Some(*offset)
                }
                _ => None,
            };
            let bytes = row.end_address().saturating_sub(row.start_address());
            *heights.entry(height).or_default() += bytes;
        }
        let all: u64 = heights.values().sum();
        let (height, bytes) = heights.into_iter().max_by_key(|(_, bytes)| *bytes)?;
        u64::try_from(height?).ok().filter(|_| bytes > all / 2)
    }

    fn eh_description(&self, section: &EhFrame<Reader>, at: FileAddress) -> Option<Description> {
        if let Some(found) = self.by_header(section, at) {
            return Some(found);
        }
        let offset = look_up(self.eh_index(section), at)?;
        section.fde_from_offset(&self.bases, offset.into(), EhFrame::cie_from_offset).ok()
    }

    /// The description by the sorted table of the header.
    fn by_header(&self, section: &EhFrame<Reader>, at: FileAddress) -> Option<Description> {
        let pointer = self.header.as_ref()?.look_up(at)?;
        let offset = pointer.checked_sub(self.bases.eh_frame.section?)?;
        let offset = gimli::EhFrameOffset(usize::try_from(offset).ok()?);
        let found = section.fde_from_offset(&self.bases, offset, EhFrame::cie_from_offset).ok()?;
        found.contains(at.0).then_some(found)
    }

    fn debug_description(
        &self,
        section: &DebugFrame<Reader>,
        at: FileAddress,
    ) -> Option<Description> {
        let offset = look_up(self.debug_index(section), at)?;
        section.fde_from_offset(&self.bases, offset.into(), DebugFrame::cie_from_offset).ok()
    }

    fn eh_index(&self, section: &EhFrame<Reader>) -> &Index {
        self.eh_index.get_or_init(|| index(section, &self.bases))
    }

    fn debug_index(&self, section: &DebugFrame<Reader>) -> &Index {
        self.debug_index.get_or_init(|| index(section, &self.bases))
    }
}

/// The table of `.eh_frame_hdr` in the one form that linkers write: pairs of 32-bit offsets from
/// the section's own address, of a function and of its description. Read here because gimli's
/// reader overflows on broken headers; any other form is left to the index.
struct SearchTable {
    bytes: Bytes,
    address: u64,
}

impl SearchTable {
    /// Version 1; pointer to `.eh_frame` and count of four bytes each; pairs as above.
    const HEADER: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
    const PAIRS: usize = 12;

    fn new(bytes: Bytes, address: u64) -> Option<Self> {
        bytes.starts_with(&Self::HEADER).then_some(Self { bytes, address })
    }

    /// The address of the description of the last function that starts at or before `address`.
    fn look_up(&self, address: FileAddress) -> Option<u64> {
        let (pairs, _) = self.bytes.get(Self::PAIRS..)?.as_chunks::<8>();
        let address_of = |four: &[u8]| {
            let offset = i32::from_le_bytes(four.try_into().unwrap_or_default());
            self.address.wrapping_add_signed(i64::from(offset))
        };
        let end = pairs.partition_point(|pair| address_of(&pair[..4]) <= address.0);
        let pair = pairs.get(end.checked_sub(1)?)?;
        Some(address_of(&pair[4..]))
    }
}

fn index<S: UnwindSection<Reader>>(section: &S, bases: &BaseAddresses) -> Index {
    let mut rows = Vec::new();
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        if let Ok(found) = partial.parse(S::cie_from_offset) {
            rows.push((found.initial_address(), found.end_address(), found.offset()));
        }
    }
    rows.sort_unstable();
    rows
}

fn look_up(index: &Index, address: FileAddress) -> Option<usize> {
    let end = index.partition_point(|row| row.0 <= address.0);
    index[..end].last().filter(|row| address.0 < row.1).map(|row| row.2)
}

/// What the rules are applied to.
struct Evaluator<'a> {
    bias: u64,
    registers: &'a Registers,
    memory: &'a dyn Memory,
}

impl Evaluator<'_> {
    fn apply<S>(&self, section: &S, description: &Description, row: &Row) -> Option<Unwound>
    where
        S: UnwindSection<Reader>,
    {
        let encoding = description.cie().encoding();
        let evaluate = |expression: &gimli::UnwindExpression<usize>, initial| {
            self.evaluate(expression.get(section).ok()?, encoding, initial)
        };
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                self.registers.get(Register(register.0))?.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(expression) => evaluate(expression, None)?,
        };
        let mut caller = self.kept();
        caller.set(Register::RSP, Some(cfa));
        for (register, rule) in row.registers() {
            let at = |offset: i64| Address(cfa.wrapping_add_signed(offset));
            let value = match rule {
                RegisterRule::SameValue => self.registers.get(Register(register.0)),
                RegisterRule::Offset(offset) => self.memory.word(at(*offset)),
                RegisterRule::ValOffset(offset) => Some(at(*offset).0),
                RegisterRule::Register(other) => self.registers.get(Register(other.0)),
                RegisterRule::Expression(expression) => evaluate(expression, Some(cfa))
                    .and_then(|address| self.memory.word(Address(address))),
                RegisterRule::ValExpression(expression) => evaluate(expression, Some(cfa)),
                RegisterRule::Constant(value) => Some(*value),
                _ => None,
            };
            caller.set(Register(register.0), value);
        }
        let column = Register(description.cie().return_address_register().0);
        let undefined =
            matches!(row.register(gimli::Register(column.0)), Some(RegisterRule::Undefined));
        let pc = if undefined { Some(0) } else { caller.get(column) };
        caller.set(Register::RIP, Some(pc?));
        Some(Unwound { cfa: Address(cfa), caller, signal: description.is_signal_trampoline() })
    }

    /// The registers that a callee leaves alone unless its rules say otherwise.
    fn kept(&self) -> Registers {
        let mut kept = Registers::of_caller(self.registers);
        for register in CALLEE_SAVED.map(Register) {
            kept.set(register, self.registers.get(register));
        }
        kept
    }

    fn evaluate(
        &self,
        expression: gimli::Expression<Reader>,
        encoding: gimli::Encoding,
        initial: Option<u64>,
    ) -> Option<u64> {
        let mut evaluation = expression.evaluation(encoding);
        evaluation.set_max_iterations(LONGEST_EXPRESSION);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut state = evaluation.evaluate().ok()?;
        loop {
            state = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let mut bytes = [0; 8];
                    let wanted = bytes.get_mut(..usize::from(size))?;
                    if !self.memory.read(Address(address), wanted) {
                        return None;
                    }
                    let value = Value::Generic(u64::from_le_bytes(bytes));
                    evaluation.resume_with_memory(value).ok()?
                }
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = self.registers.get(Register(register.0))?;
                    evaluation.resume_with_register(Value::Generic(value)).ok()?
                }
                EvaluationResult::RequiresRelocatedAddress(address) => {
                    let address = address.wrapping_add(self.bias);
                    evaluation.resume_with_relocated_address(address).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.as_result().first()?.location {
            gimli::Location::Address { address } => Some(address),
            gimli::Location::Value { value } => value.to_u64(u64::MAX).ok(),
            _ => None,
        }
    }
}
