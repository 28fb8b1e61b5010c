//! What a client wants to stop at: breakpoints, watched memory, system calls.

use super::session::Session;
use gdbstub::target::ext::breakpoints::{
    Breakpoints, HwBreakpoint, HwBreakpointOps, HwWatchpoint, HwWatchpointOps, SwBreakpoint,
    SwBreakpointOps, WatchKind,
};
use gdbstub::target::ext::catch_syscalls::{CatchSyscalls, SyscallNumbers};
use gdbstub::target::{TargetError, TargetResult};
use investigate::debugging::Watch;

impl Breakpoints for Session<'_> {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl SwBreakpoint for Session<'_> {
    fn add_sw_breakpoint(&mut self, pc: u64, _: usize) -> TargetResult<bool, Self> {
        self.debugger.set_conditional(pc, self.told.conditions(pc));
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, pc: u64, _: usize) -> TargetResult<bool, Self> {
        Ok(self.debugger.set_breakpoint(pc, false))
    }
}

impl HwBreakpoint for Session<'_> {
    fn add_hw_breakpoint(&mut self, pc: u64, kind: usize) -> TargetResult<bool, Self> {
        self.add_sw_breakpoint(pc, kind)
    }

    fn remove_hw_breakpoint(&mut self, pc: u64, kind: usize) -> TargetResult<bool, Self> {
        self.remove_sw_breakpoint(pc, kind)
    }
}

fn watch(address: u64, size: u64, kind: WatchKind) -> Watch {
    Watch {
        address,
        size,
        reads: !matches!(kind, WatchKind::Write),
        writes: !matches!(kind, WatchKind::Read),
    }
}

impl HwWatchpoint for Session<'_> {
    fn add_hw_watchpoint(
        &mut self,
        at: u64,
        size: u64,
        kind: WatchKind,
    ) -> TargetResult<bool, Self> {
        self.debugger.add_watch(watch(at, size, kind));
        Ok(true)
    }

    fn remove_hw_watchpoint(
        &mut self,
        at: u64,
        size: u64,
        kind: WatchKind,
    ) -> TargetResult<bool, Self> {
        Ok(self.debugger.remove_watch(watch(at, size, kind)))
    }
}

impl CatchSyscalls for Session<'_> {
    fn enable_catch_syscalls(
        &mut self,
        filter: Option<SyscallNumbers<'_, u64>>,
    ) -> TargetResult<(), Self> {
        let numbers = filter.map(Iterator::collect).unwrap_or_default();
        self.disable_catch_syscalls()?;
        let added = self.debugger.add_system_calls(numbers);
        self.caught = Some(added.map_err(TargetError::Fatal)?);
        Ok(())
    }

    fn disable_catch_syscalls(&mut self) -> TargetResult<(), Self> {
        if let Some(id) = self.caught.take() {
            self.debugger.remove_breakpoint(id);
        }
        Ok(())
    }
}
