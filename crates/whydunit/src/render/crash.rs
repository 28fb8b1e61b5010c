//! A crash on one screen: the finding that it is, the registers, and how to learn more.

use super::finding;
use super::style::Style;
use investigate::crash::Crash;

/// Registers in a line.
const IN_A_ROW: usize = 4;

/// The crash as text.
pub fn text(crash: &Crash, style: Style) -> String {
    let mut text = finding::render(&crash.finding, style);
    text += &format!("  registers\n{}\n", style.faint(&registers(crash)));
    if let Some(advice) = crash.advice() {
        text += &format!("  {advice}\n");
    }
    text
}

fn registers(crash: &Crash) -> String {
    let row = |row: &[(&str, u64)]| {
        let cells: Vec<String> =
            row.iter().map(|(name, value)| format!("{name:<3} {value:016x}")).collect();
        format!("      {}", cells.join("  "))
    };
    crash.registers().chunks(IN_A_ROW).map(row).collect::<Vec<_>>().join("\n")
}
