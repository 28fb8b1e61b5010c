//! Instructions as text, in Intel's notation.

use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter};

/// The text of the instruction that stands at the beginning of `code`; none if none does.
pub fn first(code: &[u8], pc: u64) -> Option<String> {
    let instruction = Decoder::with_ip(64, code, pc, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then(|| text(&instruction))
}

/// The text of an instruction.
pub fn text(instruction: &Instruction) -> String {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_small_hex_numbers_in_decimal(true);
    options.set_branch_leading_zeros(false);
    options.set_show_branch_size(false);
    options.set_space_after_operand_separator(true);
    let mut text = String::new();
    formatter.format(instruction, &mut text);
    text
}
