//! Where a variable is at a moment: its location description, evaluated in a frame.

use crate::address::FileAddress;
use crate::debug_info::{Attribute, DebugInfo, Entry, Reader, reader};
use crate::registers::Register;
use crate::scene::Scene;
use crate::types::{Bound, Count, Shape, TypeRef, children};
use crate::units::{EntryId, LoadedUnit};
use crate::value::{Held, Home, Lost, Piece, Value};
use base::Address;
use gimli::{DieReference, EvaluationResult, Expression, Operation, UnitOffset, constants as dw};
use std::sync::Arc;

/// Steps an expression may take; real ones take a dozen.
const LONGEST_EXPRESSION: u32 = 10_000;
/// Requests of an expression that are answered; real ones have a handful.
const MOST_REQUESTS: usize = 10_000;
/// Expressions that need expressions (frame bases, callers' arguments) nest no deeper.
const DEEPEST: usize = 12;

type Pieces = Vec<gimli::Piece<Reader>>;

impl Scene<'_> {
    /// The variable, parameter or member at `entry`, in a frame if it needs one.
    pub(crate) fn locate(&self, module: usize, entry: EntryId, frame: Option<usize>) -> Value {
        self.locate_within(module, entry, frame, DEEPEST)
    }

    fn locate_within(
        &self,
        module: usize,
        entry: EntryId,
        frame: Option<usize>,
        depth: usize,
    ) -> Value {
        let Some(debug) = self.debug(module) else {
            let held = Held::lost(0, Lost::Broken("no debug information".into()));
            return Value { module, ty: TypeRef::Void, held };
        };
        let ty = debug.type_of(entry);
        let ty = self.with_counts(module, ty, frame, depth);
        let bits = self.size_of(module, &ty).unwrap_or(0).saturating_mul(8);
        let held = self.held(debug, module, entry, frame, bits, depth);
        Value { module, held: held.unwrap_or_else(|why| Held::lost(bits, why)), ty }
    }

    fn held(
        &self,
        debug: &DebugInfo,
        module: usize,
        entry: EntryId,
        frame: Option<usize>,
        bits: u64,
        depth: usize,
    ) -> Result<Held, Lost> {
        let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
        if let Some((unit, value)) = debug.attribute(entry, &[dw::DW_AT_const_value]) {
            return constant(&unit, &value, bits);
        }
        let Some((unit, value)) = debug.attribute(entry, &[dw::DW_AT_location]) else {
            return self.defined_elsewhere(debug, module, entry);
        };
        let moment = Moment::AtCall;
        let locating = Locating { scene: self, debug, module, unit, frame, depth, moment };
        locating.surely(|locating| locating.held_at(&value, bits))
    }

    /// A declaration without a place of its own (`extern`) is defined somewhere else.
    fn defined_elsewhere(
        &self,
        debug: &DebugInfo,
        module: usize,
        entry: EntryId,
    ) -> Result<Held, Lost> {
        if debug.attribute(entry, &[dw::DW_AT_declaration]).is_none() {
            return Err(Lost::OptimisedOut);
        }
        let name = debug.entry_name(entry).ok_or(Lost::OptimisedOut)?;
        let found = self.program.object_named(module, &name).ok_or(Lost::OptimisedOut)?;
        Ok(Held::Memory(found))
    }

    /// An array type with the element counts that hold in `frame`.
    fn with_counts(
        &self,
        module: usize,
        ty: TypeRef,
        frame: Option<usize>,
        depth: usize,
    ) -> TypeRef {
        let (_, stripped, found) = self.stripped(module, &ty);
        let Shape::Array { element, counts } = &found.shape else { return ty };
        if !counts.iter().any(|count| matches!(count, Count::Dynamic(_))) {
            return ty;
        }
        let TypeRef::Entry(_) = stripped else { return ty };
        let mut made = element.clone();
        for count in counts.iter().rev() {
            let count = match count {
                Count::Fixed(count) => Some(*count),
                Count::Dynamic(bound) => self.bound(module, bound, frame, depth),
                Count::Unknown => None,
            };
            let Some(count) = count else { return ty };
            made = made.array(count);
        }
        made
    }

    fn bound(
        &self,
        module: usize,
        bound: &Bound,
        frame: Option<usize>,
        depth: usize,
    ) -> Option<u64> {
        let depth = depth.checked_sub(1)?;
        let debug = self.debug(module)?;
        let unit = debug.unit(bound.unit.unit)?;
        let value = match debug.follow(&unit, &bound.value) {
            Some(entry) => {
                let value = self.locate_within(module, entry, frame, depth);
                let bytes = self.bytes(&value).ok()?;
                number(&bytes)
            }
            None => {
                let moment = Moment::AtCall;
                let locating = Locating { scene: self, debug, module, unit, frame, depth, moment };
                let expression = bound.value.exprloc_value()?;
                locating.surely(|locating| locating.number(expression.clone(), None)).ok()?
            }
        };
        Some(if bound.is_count { value } else { value.wrapping_add(1) })
    }

    /// Where a member with a computed place is, given the address of its record.
    pub(crate) fn computed_offset(
        &self,
        module: usize,
        bound: &Bound,
        record: Address,
    ) -> Result<Address, Lost> {
        let debug = self.debug(module).ok_or(Lost::NoFrame)?;
        let unit = debug.unit(bound.unit.unit).ok_or_else(|| broken("a unit is missing"))?;
        let locating = Locating {
            scene: self,
            debug,
            module,
            unit,
            frame: None,
            depth: DEEPEST,
            moment: Moment::AtCall,
        };
        let expression = bound.value.exprloc_value().ok_or_else(|| broken("a member's place"))?;
        locating.number(expression, Some(record.0)).map(Address)
    }
}

/// An expression being evaluated somewhere.
struct Locating<'s, 'a> {
    scene: &'s Scene<'a>,
    debug: &'s DebugInfo,
    module: usize,
    unit: Arc<LoadedUnit>,
    frame: Option<usize>,
    depth: usize,
    moment: Moment,
}

/// When, in a frame that has made a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// While the call is made.
    AtCall,
    /// While the call is made, with registers that the callee leaves alone.
    Untouched,
    /// When the call will have returned.
    Returned,
}

impl Locating<'_, '_> {
    /// Asks at the call; if that fails because the answer is in a register that a callee may have
    /// overwritten, finds out whether it has.
    fn surely<T>(mut self, ask: impl Fn(&Self) -> Result<T, Lost>) -> Result<T, Lost> {
        let first = ask(&self);
        if !matches!(first, Err(Lost::Overwritten(_))) {
            return first;
        }
        // If the value is in the same register when the call has returned, the compiler knows
        // that the callee does not touch it.
        self.moment = Moment::Returned;
        match (&first, ask(&self)) {
            (Err(Lost::Overwritten(now)), Err(Lost::Overwritten(then))) if *now == then => {
                self.moment = Moment::Untouched;
                ask(&self)
            }
            _ => first,
        }
    }

    /// The bytes of a register of the frame.
    fn register_bytes(&self, register: Register) -> Result<Vec<u8>, Lost> {
        let frame = self.scene.frame(self.frame.ok_or(Lost::NoFrame)?).ok_or(Lost::NoFrame)?;
        let bytes = match self.moment {
            Moment::Untouched => frame.registers.untouched_bytes(register),
            _ => frame.registers.bytes(register),
        };
        bytes.ok_or(Lost::Overwritten(register))
    }

    fn held_at(&self, value: &Attribute, bits: u64) -> Result<Held, Lost> {
        let expression = self.expression(value)?;
        let pieces = self.evaluate(expression, None)?;
        self.held(pieces, bits)
    }

    fn bias(&self) -> u64 {
        self.scene.program.modules().get(self.module).map_or(0, |module| module.bias())
    }

    /// The code address of the frame, in the module's own addresses.
    fn pc(&self) -> Option<FileAddress> {
        let frame = self.scene.frame(self.frame?)?;
        let code = if self.moment == Moment::Returned { frame.pc } else { frame.code() };
        Some(FileAddress::unloaded(code, self.bias()))
    }

    /// The expression that holds at the frame's address.
    fn expression(&self, value: &Attribute) -> Result<Expression<Reader>, Lost> {
        /// More entries than any variable has; broken lists are endless.
        const MOST: usize = 1 << 16;
        if let Some(expression) = value.exprloc_value() {
            return Ok(expression);
        }
        let unit = &self.unit;
        let list = unit.dwarf.attr_locations(&unit.unit, value.clone());
        let list = list.map_err(broken)?;
        let list = list.ok_or_else(|| broken("a location of an unknown form"))?;
        let pc = self.pc().ok_or(Lost::NoFrame)?;
        for entry in list.take(MOST) {
            let entry = entry.map_err(broken)?;
            if (entry.range.begin..entry.range.end).contains(&pc.0) {
                return Ok(entry.data);
            }
        }
        Err(Lost::OptimisedOut)
    }

    /// Evaluates an expression to an address or a number.
    fn number(&self, expression: Expression<Reader>, initial: Option<u64>) -> Result<u64, Lost> {
        let value = self.top(expression, initial)?;
        value.to_u64(u64::MAX).map_err(broken)
    }

    /// Evaluates an expression to a number of whatever type.
    fn top(
        &self,
        expression: Expression<Reader>,
        initial: Option<u64>,
    ) -> Result<gimli::Value, Lost> {
        let pieces = self.evaluate(expression, initial)?;
        match pieces.first().map(|piece| &piece.location) {
            Some(gimli::Location::Address { address }) => Ok(gimli::Value::Generic(*address)),
            Some(gimli::Location::Value { value }) => Ok(*value),
            Some(gimli::Location::Register { register }) => {
                Ok(gimli::Value::Generic(self.register(Register(register.0))?))
            }
            _ => Err(Lost::OptimisedOut),
        }
    }

    fn evaluate(
        &self,
        expression: Expression<Reader>,
        initial: Option<u64>,
    ) -> Result<Pieces, Lost> {
        let mut evaluation = expression.evaluation(self.unit.unit.encoding());
        evaluation.set_max_iterations(LONGEST_EXPRESSION);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
            evaluation.set_object_address(initial);
        }
        let mut state = evaluation.evaluate().map_err(not_understood)?;
        for _ in 0..MOST_REQUESTS {
            let next = match state {
                EvaluationResult::Complete => return Ok(evaluation.result()),
                EvaluationResult::RequiresMemory { address, size, base_type, .. } => {
                    let mut bytes = vec![0; usize::from(size)];
                    if !self.scene.memory.read(Address(address), &mut bytes) {
                        return Err(Lost::Unreadable(Address(address)));
                    }
                    evaluation.resume_with_memory(self.typed(&bytes, base_type)?)
                }
                EvaluationResult::RequiresRegister { register, base_type } => {
                    let register = Register(register.0);
                    let bytes = self.register_bytes(register)?;
                    evaluation.resume_with_register(self.typed(&bytes, base_type)?)
                }
                EvaluationResult::RequiresFrameBase => {
                    evaluation.resume_with_frame_base(self.frame_base()?)
                }
                EvaluationResult::RequiresTls(offset) => {
                    let address = self.scene.thread_local(self.module, offset);
                    evaluation.resume_with_tls(address.ok_or(Lost::NoThread)?.0)
                }
                EvaluationResult::RequiresCallFrameCfa => {
                    let frame = self.scene.frame(self.frame.ok_or(Lost::NoFrame)?);
                    let cfa = frame.and_then(|frame| frame.cfa).ok_or(Lost::NoFrame)?;
                    evaluation.resume_with_call_frame_cfa(cfa.0)
                }
                EvaluationResult::RequiresAtLocation(reference) => {
                    evaluation.resume_with_at_location(self.called(reference)?)
                }
                EvaluationResult::RequiresEntryValue(expression) => {
                    evaluation.resume_with_entry_value(self.entry_value(expression)?)
                }
                EvaluationResult::RequiresParameterRef(offset) => {
                    let wanted = EntryId { unit: self.unit.id, offset: offset.0 };
                    let value = self.argument(&Argument::Parameter(wanted))?;
                    evaluation.resume_with_parameter_ref(number(&value_bytes(value)))
                }
                EvaluationResult::RequiresRelocatedAddress(address) => {
                    evaluation.resume_with_relocated_address(address.wrapping_add(self.bias()))
                }
                EvaluationResult::RequiresIndexedAddress { index, relocate } => {
                    let address =
                        self.unit.dwarf.address(&self.unit.unit, index).map_err(broken)?;
                    let bias = if relocate { self.bias() } else { 0 };
                    evaluation.resume_with_indexed_address(address.wrapping_add(bias))
                }
                EvaluationResult::RequiresBaseType(offset) => {
                    evaluation.resume_with_base_type(self.value_type(offset)?)
                }
                _ => return Err(Lost::Unsupported("an operation for another machine".into())),
            };
            state = next.map_err(not_understood)?;
        }
        Err(broken("an expression without an end"))
    }

    fn register(&self, register: Register) -> Result<u64, Lost> {
        Ok(number(&self.register_bytes(register)?))
    }

    fn value_type(&self, offset: UnitOffset) -> Result<gimli::ValueType, Lost> {
        if offset.0 == 0 {
            return Ok(gimli::ValueType::Generic);
        }
        let entry = self.unit.unit.entry(offset).map_err(broken)?;
        let found = gimli::ValueType::from_entry(&entry).map_err(broken)?;
        found.ok_or_else(|| Lost::Unsupported("a base type in an expression".into()))
    }

    fn typed(&self, bytes: &[u8], base_type: UnitOffset) -> Result<gimli::Value, Lost> {
        let kind = self.value_type(base_type)?;
        if kind == gimli::ValueType::Generic {
            return Ok(gimli::Value::Generic(number(bytes)));
        }
        let mut wide = bytes.to_vec();
        wide.resize(bytes.len().max(16), 0);
        gimli::Value::parse(kind, reader(wide.into())).map_err(broken)
    }

    fn frame_base(&self) -> Result<u64, Lost> {
        let pc = self.pc().ok_or(Lost::NoFrame)?;
        let (unit, function) = self.debug.function_at(pc).ok_or(Lost::NoFrame)?;
        let base = self.debug.attribute(function.entry, &[dw::DW_AT_frame_base]);
        let (_, value) = base.ok_or(Lost::NoFrame)?;
        let inner = self.within(unit, self.frame)?;
        inner.number(inner.expression(&value)?, None)
    }

    fn within(
        &self,
        unit: Arc<LoadedUnit>,
        frame: Option<usize>,
    ) -> Result<Locating<'_, '_>, Lost> {
        let depth = self.depth.checked_sub(1).ok_or_else(too_deep)?;
        let (scene, debug, module) = (self.scene, self.debug, self.module);
        Ok(Locating { scene, debug, module, unit, frame, depth, moment: Moment::AtCall })
    }

    /// The location of another entry, for an expression that calls it.
    fn called(&self, reference: DieReference<usize>) -> Result<Reader, Lost> {
        let entry = match reference {
            DieReference::UnitRef(offset) => Some(EntryId { unit: self.unit.id, offset: offset.0 }),
            DieReference::DebugInfoRef(offset) => self.debug.at_own(&self.unit, offset.0),
        };
        let found = entry.and_then(|entry| self.debug.attribute(entry, &[dw::DW_AT_location]));
        // Without a location the call has no effect, says the standard.
        let Some((_, value)) = found else { return Ok(reader(Arc::from([]))) };
        Ok(self.expression(&value)?.0)
    }

    /// What a register held when the frame's function was entered, told by the caller.
    fn entry_value(&self, expression: Expression<Reader>) -> Result<gimli::Value, Lost> {
        let mut operations = expression.operations(self.unit.unit.encoding());
        match (operations.next(), operations.next()) {
            (Ok(Some(Operation::Register { register })), Ok(None)) => {
                self.argument(&Argument::Register(register))
            }
            (Ok(Some(Operation::RegisterOffset { register, offset: 0, base_type })), Ok(None)) => {
                let value = self.argument(&Argument::Register(register))?;
                self.typed(&value_bytes(value), base_type)
            }
            _ => Err(Lost::OptimisedOut),
        }
    }

    /// An argument of the call that made the frame, computed in the caller's frame.
    fn argument(&self, wanted: &Argument) -> Result<gimli::Value, Lost> {
        let callee = self.frame.ok_or(Lost::NoFrame)?;
        let caller = self.scene.frame(callee + 1).ok_or(Lost::OptimisedOut)?;
        let (loaded, module) =
            self.scene.program.locate(caller.code()).ok_or(Lost::OptimisedOut)?;
        let debug = self.scene.debug(module).ok_or(Lost::OptimisedOut)?;
        let return_pc = FileAddress::unloaded(caller.pc, loaded.bias());
        let at = FileAddress::unloaded(caller.code(), loaded.bias());
        let (_, function) = debug.function_at(at).ok_or(Lost::OptimisedOut)?;
        let scope = debug.scope(function.entry).ok_or(Lost::OptimisedOut)?;
        let call = scope
            .all()
            .into_iter()
            .flat_map(|scope| &scope.calls)
            .find_map(|(pc, call)| (*pc == return_pc.0).then_some(*call));
        let call = call.ok_or(Lost::OptimisedOut)?;
        let unit = debug.unit(call.unit).ok_or(Lost::OptimisedOut)?;
        let depth = self.depth.checked_sub(1).ok_or_else(too_deep)?;
        let (scene, frame) = (self.scene, Some(callee + 1));
        let locating =
            Locating { scene, debug, module, unit, frame, depth, moment: Moment::AtCall };
        self.check_target(&locating, call)?;
        let value = locating.call_value(call, wanted).ok_or(Lost::OptimisedOut)?;
        // Such an expression is a value, not a place; saying so keeps its type.
        let stated = [value.0.bytes(), &[dw::DW_OP_stack_value.0]].concat();
        locating.top(Expression(reader(stated.into())), None)
    }

    /// A call that went elsewhere first (and left by a jump) says nothing of this frame; neither
    /// does one of which nobody knows where it went.
    fn check_target(&self, caller: &Locating<'_, '_>, call: EntryId) -> Result<(), Lost> {
        let own = self.pc().and_then(|pc| self.debug.function_at(pc));
        let (_, own) = own.ok_or(Lost::OptimisedOut)?;
        let unit = &caller.unit.unit;
        let entry = unit.entry(UnitOffset(call.offset)).map_err(broken)?;
        let first = |names: &[gimli::DwAt]| names.iter().find_map(|name| entry.attr_value(*name));
        let named = first(&[dw::DW_AT_call_origin, dw::DW_AT_abstract_origin]);
        if let Some(target) = named.and_then(|value| caller.debug.follow(&caller.unit, &value)) {
            let target = caller.debug.function_name(target);
            let same = target.is_some() && target == self.debug.function_name(own.entry);
            return if same { Ok(()) } else { Err(Lost::OptimisedOut) };
        }
        let computed = first(&[dw::DW_AT_call_target, dw::DW_AT_GNU_call_site_target]);
        let computed =
            computed.and_then(|value| value.exprloc_value()).ok_or(Lost::OptimisedOut)?;
        let target = caller.number(computed, None)?;
        let same = Address(target) == own.start().loaded(self.bias());
        if same { Ok(()) } else { Err(Lost::OptimisedOut) }
    }

    /// The expression for one argument of a call.
    fn call_value(&self, call: EntryId, wanted: &Argument) -> Option<Expression<Reader>> {
        let mut found = None;
        children(&self.unit, UnitOffset(call.offset), |child| {
            if found.is_none() && self.is_argument(child, wanted) {
                let value = child
                    .attr_value(dw::DW_AT_call_value)
                    .or_else(|| child.attr_value(dw::DW_AT_GNU_call_site_value));
                found = value.and_then(|value| value.exprloc_value());
            }
        });
        found
    }

    fn is_argument(&self, parameter: &Entry, wanted: &Argument) -> bool {
        match wanted {
            Argument::Register(register) => {
                let location = parameter.attr_value(dw::DW_AT_location);
                let expression = location.and_then(|value| value.exprloc_value());
                let operations = expression.map(|e| e.operations(self.unit.unit.encoding()));
                matches!(
                    operations.map(|mut operations| operations.next()),
                    Some(Ok(Some(Operation::Register { register: found }))) if found == *register
                )
            }
            Argument::Parameter(entry) => {
                let named = parameter
                    .attr_value(dw::DW_AT_call_parameter)
                    .or_else(|| parameter.attr_value(dw::DW_AT_abstract_origin));
                named.and_then(|value| self.debug.follow(&self.unit, &value)) == Some(*entry)
            }
        }
    }

    /// Turns the pieces of an evaluation into the bits of a value.
    fn held(&self, pieces: Pieces, bits: u64) -> Result<Held, Lost> {
        let frame = self.frame.unwrap_or(0);
        let mut held = Vec::new();
        for piece in pieces {
            let skip = piece.bit_offset.unwrap_or(0);
            let home = match piece.location {
                gimli::Location::Empty => Home::Lost(Lost::OptimisedOut),
                gimli::Location::Register { register } => {
                    let register = Register(register.0);
                    match self.register_bytes(register) {
                        // Known, but not by looking at the frame alone.
                        Ok(bytes) if self.moment == Moment::Untouched => {
                            Home::Constant(bytes.into())
                        }
                        Err(why @ Lost::Overwritten(_)) => return Err(why),
                        _ => Home::Register { register, frame },
                    }
                }
                gimli::Location::Address { address } => {
                    if piece.size_in_bits.is_none() {
                        return Ok(Held::Memory(Address(address)));
                    }
                    Home::Memory(Address(address))
                }
                gimli::Location::Value { value } => Home::Constant(value_bytes(value).into()),
                gimli::Location::Bytes { value } => Home::Constant(value.bytes().into()),
                gimli::Location::ImplicitPointer { value, byte_offset } => {
                    match self.debug.at_own(&self.unit, value.0) {
                        Some(entry) => {
                            let frame = self.frame;
                            Home::ImplicitPointer { entry, offset: byte_offset, frame }
                        }
                        None => Home::Lost(broken("a pointer to a missing entry")),
                    }
                }
            };
            held.push(Piece { bits: piece.size_in_bits.unwrap_or(bits), home, skip });
        }
        let known = held.iter().fold(0u64, |sum, piece| sum.saturating_add(piece.bits));
        if known < bits || held.is_empty() {
            held.push(Piece::lost(bits.saturating_sub(known), Lost::OptimisedOut));
        }
        Ok(Held::Pieces(held))
    }
}

/// Which argument of a call is wanted.
enum Argument {
    Register(gimli::Register),
    Parameter(EntryId),
}

fn value_bytes(value: gimli::Value) -> Vec<u8> {
    match value {
        gimli::Value::F32(number) => number.to_le_bytes().to_vec(),
        gimli::Value::F64(number) => number.to_le_bytes().to_vec(),
        number => {
            let negative = matches!(number, gimli::Value::I8(n) if n < 0)
                || matches!(number, gimli::Value::I16(n) if n < 0)
                || matches!(number, gimli::Value::I32(n) if n < 0)
                || matches!(number, gimli::Value::I64(n) if n < 0);
            let word = number.to_u64(u64::MAX).unwrap_or(0);
            let mut bytes = word.to_le_bytes().to_vec();
            bytes.resize(16, if negative { 0xff } else { 0 });
            bytes
        }
    }
}

/// A value that the compiler knew, at the size of its type.
fn constant(unit: &LoadedUnit, value: &Attribute, bits: u64) -> Result<Held, Lost> {
    const LARGEST: u64 = 1 << 16;
    let size = usize::try_from(bits.div_ceil(8).min(LARGEST)).unwrap_or(0);
    let mut bytes = match value {
        Attribute::Block(block) => block.bytes().to_vec(),
        Attribute::Exprloc(expression) => expression.0.bytes().to_vec(),
        Attribute::Sdata(number) => {
            let fill = if *number < 0 { 0xff } else { 0 };
            let mut bytes = number.to_le_bytes().to_vec();
            bytes.resize(size.max(8), fill);
            bytes
        }
        Attribute::Addr(address) => address.to_le_bytes().to_vec(),
        value => match value.udata_value() {
            Some(number) => number.to_le_bytes().to_vec(),
            None => {
                let text = unit.string(value.clone()).ok_or_else(|| broken("a constant"))?;
                [text.as_bytes(), &[0]].concat()
            }
        },
    };
    bytes.resize(size, 0);
    Ok(Held::constant(bytes))
}

/// Up to eight bytes as a number.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let count = bytes.len().min(8);
    word[..count].copy_from_slice(&bytes[..count]);
    u64::from_le_bytes(word)
}

fn broken(what: impl std::fmt::Display) -> Lost {
    Lost::Broken(what.to_string())
}

fn not_understood(error: gimli::Error) -> Lost {
    Lost::Unsupported(error.to_string())
}

fn too_deep() -> Lost {
    broken("expressions that need each other")
}
