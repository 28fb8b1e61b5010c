//! Memory that no program can have written to.

use symbols::Program;

/// The constant parts of a program's files, by address: address, bytes. What stands there was made by nobody.
#[must_use]
pub fn constants(program: &Program) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for module in program.modules() {
        let Some(image) = module.module().map(|module| module.image()) else { continue };
        let constant = image.segments().iter().filter(|segment| !segment.writable);
        found.extend(constant.map(|s| (s.address.0.wrapping_add(module.bias()), s.size)));
    }
    found.sort_unstable();
    found
}
