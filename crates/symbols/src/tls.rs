//! Where a thread keeps its own variables, by the layout that glibc and the ELF TLS ABI share:
//! the executable's block ends at the thread pointer, and a vector behind the thread pointer has
//! the address of every module's block.

use crate::address::FileAddress;
use crate::program::ProgramModule;
use crate::scene::Scene;
use base::Address;

/// Longest list of loaded modules that is followed.
const MOST_MODULES: usize = 4096;
const DT_NULL: u64 = 0;
const DT_DEBUG: u64 = 21;
/// A block that the thread has not yet needed.
const NOT_ALLOCATED: u64 = u64::MAX;

impl Scene<'_> {
    /// The address of the thread-local variable at `offset` of the module's template.
    pub(crate) fn thread_local(&self, module: usize, offset: u64) -> Option<Address> {
        let pointer = self.thread_pointer?;
        let modules = self.program.modules();
        let wanted = modules.get(module)?;
        let executable = self.executable()?;
        if std::ptr::eq(wanted, executable) {
            let tls = wanted.module()?.image().tls()?;
            let size = tls.size.checked_next_multiple_of(tls.align)?;
            return Some(Address(pointer.0.wrapping_sub(size).wrapping_add(offset)));
        }
        let number = self.tls_number(executable, wanted)?;
        let vector = self.memory.word(pointer.offset(8))?;
        let block = self.memory.word(Address(vector.wrapping_add(number * 16)))?;
        (block != NOT_ALLOCATED && block != 0).then(|| Address(block.wrapping_add(offset)))
    }

    /// The module that the kernel started: the only one with the list of all others.
    fn executable(&self) -> Option<&ProgramModule> {
        let modules = self.program.modules();
        let listed = modules.iter().find(|module| self.list_of_modules(module).is_some());
        listed.or_else(|| match modules {
            // A static program has no list, and no other modules.
            [only] => Some(only),
            _ => modules.iter().find(|module| {
                module.module().is_some_and(|module| module.image().dynamic().is_none())
            }),
        })
    }

    /// The head of the dynamic loader's list of modules.
    fn list_of_modules(&self, module: &ProgramModule) -> Option<Address> {
        let dynamic = module.module()?.image().dynamic()?.loaded(module.bias());
        for entry in 0..256 {
            let at = dynamic.offset(entry * 16);
            match self.memory.word(at)? {
                DT_NULL => return None,
                DT_DEBUG => {
                    let debug = self.memory.word(at.offset(8)).filter(|debug| *debug != 0)?;
                    return self.memory.word(Address(debug).offset(8)).map(Address);
                }
                _ => {}
            }
        }
        None
    }

    /// The number of a module among those with thread-local variables: they are numbered in the
    /// order of the list.
    fn tls_number(&self, executable: &ProgramModule, wanted: &ProgramModule) -> Option<u64> {
        let mut at = self.list_of_modules(executable)?;
        let mut number = 0;
        for _ in 0..MOST_MODULES {
            let bias = self.memory.word(at)?;
            let dynamic = self.memory.word(at.offset(16))?;
            let found = self.program.modules().iter().find(|module| {
                let own = module.module().and_then(|module| module.image().dynamic());
                module.bias() == bias
                    && own.is_some_and(|own: FileAddress| own.loaded(bias).0 == dynamic)
            });
            if let Some(found) = found {
                let has_tls = found.module().is_some_and(|module| module.image().tls().is_some());
                number += u64::from(has_tls);
                if std::ptr::eq(found, wanted) {
                    return has_tls.then_some(number);
                }
            }
            at = Address(self.memory.word(at.offset(24)).filter(|next| *next != 0)?);
        }
        None
    }
}
