//! Values and types in the program's own terms: strings as text, enumerations by name, records
//! with their members, Rust as Rust. Bounded in depth, elements and length, whatever the program
//! holds.

use crate::location::number;
use crate::members::{Scalar, float};
use crate::scene::Scene;
use crate::types::{Count, Member, Record, Shape, Type, TypeRef};
use crate::value::{Held, Home, Lost, Piece, Value};
use base::Address;
use std::fmt::Write as _;

/// How much of a value is shown.
#[derive(Clone, Copy, Debug)]
pub struct Printing {
    /// Records and arrays inside one another.
    pub depth: usize,
    /// Elements of one array.
    pub elements: u64,
    /// Characters of one text.
    pub text: u64,
    /// Characters of all, roughly.
    pub total: usize,
}

impl Default for Printing {
    fn default() -> Self {
        Self { depth: 4, elements: 100, text: 200, total: 4000 }
    }
}

impl Printing {
    /// Little: for a line among others.
    pub const SHORT: Self = Self { depth: 2, elements: 8, text: 60, total: 200 };
}

/// Equal elements in a row are counted from this many on.
const SHORTEST_RUN: u64 = 8;
/// Types inside one another are named no deeper.
const DEEPEST_NAME: usize = 16;

impl Scene<'_> {
    /// The value as text. What cannot be had is said in its place.
    #[must_use]
    pub fn print(&self, value: &Value, printing: &Printing) -> String {
        let mut printer = Printer { scene: self, printing, out: String::new() };
        printer.value(value, printing.depth);
        printer.out
    }

    /// The name of a type as its language writes it.
    #[must_use]
    pub fn type_name(&self, module: usize, ty: &TypeRef) -> String {
        self.type_name_within(module, ty, DEEPEST_NAME)
    }

    fn type_name_within(&self, module: usize, ty: &TypeRef, depth: usize) -> String {
        let Some(depth) = depth.checked_sub(1) else { return "…".into() };
        let found = self.type_of(module, ty);
        let inner = |to: &TypeRef| self.type_name_within(module, to, depth);
        match (&found.shape, &found.name) {
            (Shape::Record(record), name) => {
                let keyword = record.keyword;
                let name = name.as_deref().unwrap_or("{…}");
                if keyword.is_empty() { name.into() } else { format!("{keyword} {name}") }
            }
            (Shape::Alias { to, qualifier }, None) => format!("{qualifier} {}", inner(to)),
            (_, Some(name)) => name.clone(),
            (Shape::Pointer { to }, None) => {
                let to = inner(to);
                let space = if to.ends_with('*') { "" } else { " " };
                format!("{to}{space}*")
            }
            (Shape::Reference { to }, None) => format!("{} &", inner(to)),
            (Shape::Array { element, counts }, None) => {
                let mut name = inner(element);
                if !name.contains('[') {
                    name.push(' ');
                }
                for count in counts {
                    match count {
                        Count::Fixed(count) => {
                            let _ = write!(name, "[{count}]");
                        }
                        _ => name.push_str("[]"),
                    }
                }
                name
            }
            (Shape::Function { returns, parameters }, None) => {
                let parameters: Vec<String> = parameters.iter().map(inner).collect();
                format!("{} ({})", inner(returns), parameters.join(", "))
            }
            (Shape::Void, None) => "void".into(),
            (Shape::Integer { signed }, None) => {
                let sign = if *signed { 'i' } else { 'u' };
                format!("{sign}{}", found.size.unwrap_or(0) * 8)
            }
            (Shape::Float, None) => format!("f{}", found.size.unwrap_or(0) * 8),
            (Shape::Enumeration { .. }, None) => "enum {…}".into(),
            _ => "unknown".into(),
        }
    }

    /// The names of a record's members, of those of its bases and anonymous members too.
    #[must_use]
    pub fn member_names(&self, value: &Value) -> Vec<String> {
        let mut names = Vec::new();
        self.collect_members(value, &mut names, 8);
        names
    }

    fn collect_members(&self, value: &Value, names: &mut Vec<String>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let (value, found) = self.plain(value);
        let Shape::Record(record) = &found.shape else { return };
        let variant = self.active_variant(&value, record).ok().flatten();
        let variant = variant.map(|variant| &variant.members[..]).unwrap_or_default();
        for member in record.members.iter().chain(variant) {
            match &member.name {
                Some(name) if !member.base => names.push(name.clone()),
                _ => {
                    if let Ok(inner) = self.member_value(&value, member) {
                        self.collect_members(&inner, names, depth);
                    }
                }
            }
        }
    }
}

struct Printer<'s, 'a> {
    scene: &'s Scene<'a>,
    printing: &'s Printing,
    out: String,
}

impl Printer<'_, '_> {
    fn value(&mut self, value: &Value, depth: usize) {
        if self.out.len() >= self.printing.total {
            self.out.push('…');
            return;
        }
        let (value, found) = self.scene.plain(value);
        if let Err(why) = self.shape(&value, &found, depth) {
            self.lost(&why);
        }
    }

    fn lost(&mut self, why: &Lost) {
        let _ = write!(self.out, "<{why}>");
    }

    fn shape(&mut self, value: &Value, found: &Type, depth: usize) -> Result<(), Lost> {
        match &found.shape {
            Shape::Void => self.out.push_str("void"),
            Shape::Integer { .. } => self.integer(value)?,
            Shape::Boolean => match self.whole(value)? {
                0 => self.out.push_str("false"),
                1 => self.out.push_str("true"),
                other => self.number(other),
            },
            Shape::Character { .. } => self.character(value, found.rust)?,
            Shape::Float => match float(&self.scene.bytes(value)?) {
                Some(number) => self.float(number, found.size),
                None => self.out.push_str("<a float of an unknown size>"),
            },
            Shape::Pointer { to } => self.pointer(value, to)?,
            Shape::Reference { .. } => match self.scene.dereference(value)? {
                Some(to) => self.value(&to, depth),
                None => self.out.push_str("<a reference to nothing>"),
            },
            Shape::Array { element, counts } => self.array(value, element, counts, depth)?,
            Shape::Record(record) => self.record(value, found, record, depth)?,
            Shape::Enumeration { names, .. } => self.enumeration(value, found, names)?,
            Shape::Function { .. } => {
                if let Some(address) = value.held.address() {
                    let _ = write!(self.out, "{{code at {address}}}");
                    self.symbol(address);
                }
            }
            Shape::Alias { .. } | Shape::Unknown => match self.scene.bytes(value) {
                Ok(bytes) => self.raw(&bytes),
                Err(why) => return Err(why),
            },
        }
        Ok(())
    }

    fn whole(&self, value: &Value) -> Result<i128, Lost> {
        match self.scene.scalar(value)? {
            Some(Scalar::Integer(number)) => Ok(number),
            _ => Err(Lost::Broken("not a number".into())),
        }
    }

    fn integer(&mut self, value: &Value) -> Result<(), Lost> {
        let number = self.whole(value)?;
        self.number(number);
        Ok(())
    }

    fn number(&mut self, number: i128) {
        let _ = write!(self.out, "{number}");
    }

    fn float(&mut self, number: f64, size: Option<u64>) {
        let _ = match size {
            // The shortest digits that read back as the same number of that size.
            Some(4) => write!(self.out, "{:?}", number as f32),
            _ => write!(self.out, "{number:?}"),
        };
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.out.push_str("0x");
        for byte in bytes.iter().rev().take(64) {
            let _ = write!(self.out, "{byte:02x}");
        }
    }

    /// C's characters are numbers first; others are characters alone.
    fn character(&mut self, value: &Value, rust: bool) -> Result<(), Lost> {
        let number = self.whole(value)?;
        let size = self.scene.size_of(value.module, &value.ty);
        if size == Some(1) && !rust {
            let _ = write!(self.out, "{number} ");
        }
        let code = u32::try_from(number & 0xffff_ffff).unwrap_or(0);
        let code = if size == Some(1) { code & 0xff } else { code };
        let sign = char::from_u32(code).filter(|_| size != Some(1) || code < 0x80);
        match sign {
            Some(sign) => {
                let _ = write!(self.out, "'{}'", sign.escape_debug());
            }
            None => {
                let _ = write!(self.out, "'\\x{code:02x}'");
            }
        }
        Ok(())
    }

    fn pointer(&mut self, value: &Value, to: &TypeRef) -> Result<(), Lost> {
        if let Held::Pieces(pieces) = &value.held
            && let [Piece { home: Home::ImplicitPointer { .. }, .. }] = &pieces[..]
        {
            self.out.push_str("<optimised out, but what it points to is known>");
            return Ok(());
        }
        let address = Address(number(&self.scene.bytes(value)?));
        let _ = write!(self.out, "{address}");
        if address.0 == 0 {
            return Ok(());
        }
        let (module, to, found) = self.scene.stripped(value.module, to);
        match &found.shape {
            Shape::Character { .. } if self.scene.size_of(module, &to) == Some(1) => {
                self.out.push(' ');
                self.c_string(address);
            }
            _ => self.symbol(address),
        }
        Ok(())
    }

    /// ` <name+offset>` for what has a name of its own.
    fn symbol(&mut self, address: Address) {
        if let Some((name, offset)) = self.scene.program.symbol_at(address) {
            let _ = match offset {
                0 => write!(self.out, " <{name}>"),
                _ => write!(self.out, " <{name}+{offset}>"),
            };
        }
    }

    /// Text up to its end, read in steps so as not to run into memory that is not there.
    fn c_string(&mut self, address: Address) {
        let mut bytes = Vec::new();
        let mut ended = false;
        while (bytes.len() as u64) < self.printing.text {
            let mut byte = [0];
            if !self.scene.memory.read(address.offset(bytes.len() as i64), &mut byte) {
                if bytes.is_empty() {
                    self.lost(&Lost::Unreadable(address));
                    return;
                }
                break;
            }
            if byte[0] == 0 {
                ended = true;
                break;
            }
            bytes.push(byte[0]);
        }
        self.text(&bytes, !ended);
    }

    fn text(&mut self, bytes: &[u8], more: bool) {
        self.out.push('"');
        for chunk in bytes.utf8_chunks() {
            for sign in chunk.valid().chars() {
                match sign {
                    '\'' => self.out.push('\''),
                    sign => self.out.extend(sign.escape_debug()),
                }
            }
            for byte in chunk.invalid() {
                let _ = write!(self.out, "\\x{byte:02x}");
            }
        }
        self.out.push_str(if more { "\"…" } else { "\"" });
    }

    fn array(
        &mut self,
        value: &Value,
        element: &TypeRef,
        counts: &[Count],
        depth: usize,
    ) -> Result<(), Lost> {
        let count = match counts.first() {
            Some(Count::Fixed(count)) => *count,
            _ => {
                self.out.push_str("<an array of unknown length>");
                return Ok(());
            }
        };
        let (_, _, found) = self.scene.stripped(value.module, element);
        let character = matches!(found.shape, Shape::Character { .. }) && found.size == Some(1);
        if character && counts.len() == 1 {
            return self.character_array(value, count);
        }
        let brackets = if self.scene.type_of(value.module, element).rust || found.rust {
            ("[", "]")
        } else {
            ("{", "}")
        };
        let element = |index: u64| self.scene.element(value, index.into()).ok().flatten();
        let elements: Vec<_> = (0..count.min(self.printing.elements)).map_while(element).collect();
        self.elements(&elements, count, brackets, depth);
        Ok(())
    }

    fn character_array(&mut self, value: &Value, count: u64) -> Result<(), Lost> {
        let shown = count.min(self.printing.text);
        let part = value.held.part(0, shown.saturating_mul(8));
        let mut bytes = self.scene.read(&part, shown)?;
        let whole = shown == count;
        // What follows the text in its buffer is noise if it is all zero.
        if let Some(end) = bytes.iter().position(|byte| *byte == 0)
            && bytes[end..].iter().all(|byte| *byte == 0)
        {
            bytes.truncate(end);
            self.text(&bytes, false);
        } else {
            self.text(&bytes, !whole);
        }
        Ok(())
    }

    fn elements(
        &mut self,
        elements: &[Value],
        count: u64,
        (open, close): (&str, &str),
        depth: usize,
    ) {
        self.out.push_str(open);
        let Some(depth) = depth.checked_sub(1) else {
            let _ = write!(self.out, "…{close}");
            return;
        };
        let mut shown = 0;
        let mut rest = elements;
        while let Some((first, others)) = rest.split_first() {
            if self.out.len() >= self.printing.total {
                break;
            }
            if shown > 0 {
                self.out.push_str(", ");
            }
            let start = self.out.len();
            self.value(first, depth);
            let text = self.out[start..].to_owned();
            let run = 1 + self.run_length(&text, others, depth);
            if run >= SHORTEST_RUN {
                let _ = write!(self.out, " ({run} times)");
                rest = &rest[run as usize..];
                shown += run;
            } else {
                rest = others;
                shown += 1;
            }
        }
        if shown < count {
            let _ = write!(self.out, ", … {} more", count - shown);
        }
        self.out.push_str(close);
    }

    /// How many of `others` print as `text`.
    fn run_length(&self, text: &str, others: &[Value], depth: usize) -> u64 {
        let same = |value: &&Value| {
            let mut printer =
                Printer { scene: self.scene, printing: self.printing, out: String::new() };
            printer.value(value, depth);
            printer.out == text
        };
        // Anything that differs early ends the search early: elements rarely repeat.
        others.iter().take_while(same).count() as u64
    }

    fn enumeration(
        &mut self,
        value: &Value,
        found: &Type,
        names: &[(String, i128)],
    ) -> Result<(), Lost> {
        let number = self.whole(value)?;
        if let Some((name, _)) = names.iter().find(|(_, known)| *known == number) {
            self.out.push_str(name);
            return Ok(());
        }
        // Flags: single bits that make up the number together.
        let single = |known: i128| known > 0 && known & (known - 1) == 0;
        let flags: Vec<&str> = names
            .iter()
            .filter(|(_, known)| single(*known) && number & known != 0)
            .map(|(name, _)| name.as_str())
            .collect();
        let covered =
            names.iter().filter(|(_, known)| single(*known)).fold(0, |all, (_, k)| all | k);
        if !flags.is_empty() && number & !covered == 0 {
            self.out.push_str(&flags.join(" | "));
        } else {
            let name = found.name.as_deref().unwrap_or("enum");
            let _ = write!(self.out, "({name}) {number}");
        }
        Ok(())
    }

    fn record(
        &mut self,
        value: &Value,
        found: &Type,
        record: &Record,
        depth: usize,
    ) -> Result<(), Lost> {
        if let Some(sequence) = self.scene.sequence(value) {
            self.sequence(&sequence, found.rust, depth);
            return Ok(());
        }
        if let Some(why) = wholly_lost(&value.held) {
            return Err(why.clone());
        }
        if record.declaration {
            let name = self.scene.type_name(value.module, &value.ty);
            let _ = write!(self.out, "<'{name}' is only declared in the debug information>");
            return Ok(());
        }
        if found.rust {
            return self.rust_record(value, found, record, depth);
        }
        self.out.push('{');
        let Some(depth) = depth.checked_sub(1) else {
            self.out.push_str("…}");
            return Ok(());
        };
        let visible = |member: &&Member| {
            // The pointer to the table of virtual functions is not the programmer's.
            !member.name.as_deref().is_some_and(|name| name.starts_with("_vptr"))
        };
        for (index, member) in record.members.iter().filter(visible).enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            match &member.name {
                _ if member.base => {
                    let name = self.scene.type_name(value.module, &member.ty);
                    let _ = write!(self.out, "<{name}> = ");
                }
                Some(name) => {
                    let _ = write!(self.out, "{name} = ");
                }
                None => {}
            }
            self.member(value, member, depth);
        }
        self.out.push('}');
        Ok(())
    }

    fn member(&mut self, value: &Value, member: &Member, depth: usize) {
        match self.scene.member_value(value, member) {
            Ok(inner) => self.value(&inner, depth),
            Err(why) => self.lost(&why),
        }
    }

    fn sequence(&mut self, sequence: &crate::collections::Sequence, rust: bool, depth: usize) {
        let (_, _, element) = self.scene.stripped(sequence.module, &sequence.element);
        if sequence.text && element.size == Some(1) {
            let shown = sequence.count.min(self.printing.text);
            match self.scene.read(&Held::Memory(sequence.start), shown) {
                Ok(bytes) => self.text(&bytes, shown < sequence.count),
                Err(why) => self.lost(&why),
            }
            return;
        }
        let shown = sequence.count.min(self.printing.elements);
        let elements: Vec<_> =
            (0..shown).map(|index| self.scene.sequence_element(sequence, index.into())).collect();
        let brackets = if rust { ("[", "]") } else { ("{", "}") };
        self.elements(&elements, sequence.count, brackets, depth);
    }

    fn rust_record(
        &mut self,
        value: &Value,
        found: &Type,
        record: &Record,
        depth: usize,
    ) -> Result<(), Lost> {
        if let Some(variant) = self.scene.active_variant(value, record)? {
            // The one member of a variant is a record that has the variant's name.
            match variant.members.first() {
                Some(member) => self.member(value, member, depth),
                None => self.out.push_str(found.name.as_deref().unwrap_or("?")),
            }
            return Ok(());
        }
        let name = found.name.as_deref().unwrap_or_default();
        if !name.starts_with('(') && !name.starts_with('{') {
            self.out.push_str(rust_name(name));
        }
        let Some(first) = record.members.first() else {
            self.out.push_str(if name == "()" { "()" } else { "" });
            return Ok(());
        };
        let tuple = first.name.as_deref().is_some_and(|name| name.starts_with("__"));
        self.out.push_str(if tuple { "(" } else { " {" });
        let Some(depth) = depth.checked_sub(1) else {
            self.out.push_str(if tuple { "…)" } else { "…}" });
            return Ok(());
        };
        for (index, member) in record.members.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            if !tuple && let Some(name) = &member.name {
                let _ = write!(self.out, "{name}: ");
            }
            self.member(value, member, depth);
        }
        self.out.push(if tuple { ')' } else { '}' });
        Ok(())
    }
}

/// The name without its generic arguments.
fn rust_name(name: &str) -> &str {
    match name.find('<') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// The reason, if no bit of a value is to be had.
fn wholly_lost(held: &Held) -> Option<&Lost> {
    let Held::Pieces(pieces) = held else { return None };
    let all = pieces.iter().all(|piece| matches!(piece.home, Home::Lost(_)));
    if all { held.why_lost() } else { None }
}
