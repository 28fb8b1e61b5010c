"""Whydunit's commands in LLDB, by the names that they have in gdb. Read it with `command script import FILE`, where
`whydunit debug --script lldb` prints it; `help whydunit` lists them."""

import lldb

COMMANDS = [
    ("when", "when", "The moment that is looked at, in the form that all commands take."),
    ("seek", "seek", "Go to a moment: PLACE#N, @TICK, @TICK:0xPC, start, crash, end."),
    ("origin", "origin", "origin EXPR: go back to the write that made its value. Without EXPR: on from there."),
    ("why", "why", "What led here: the statements that this one depends on, the nearest first."),
    ("instance", "instance", "instance FILE:LINE: how often a place has been executed up to here."),
    ("slice", "slice", "slice STATEMENT [N] [VARIABLE | ADDRESS SIZE | $REGISTER] ...: a backward slice, numbered."),
    ("info slices", "slices", "The slices, and between which places they look."),
    ("show-slice", "show", "show-slice ID: the statements of a slice."),
    ("prune", "prune", "prune ID VALUE ...: leave out of a slice what comes from these values."),
    ("record", "record", "record PLACE on | record PLACE off | record off: slices look only between these places."),
    ("sbreak", "sbreak", "sbreak ID S ... | sbreak all ID: stop at exactly the executions in a slice."),
    ("sdelete", "sdelete", "sdelete ID: forget a slice and its breakpoints."),
    ("sstep", "sstep", "sstep [ID]: to the next execution in a slice."),
    ("rsstep", "rsstep", "rsstep [ID]: to the previous execution in a slice."),
    ("break-if", "break-if", "break-if PLACE if CONDITION: stop where a condition holds."),
    ("break-call", "break-call", "break-call FUNCTION [if argN==V | ret==V | write|read|access ADDRESS [SIZE]]."),
    ("catch-calls", "catch-calls", "catch-calls [NUMBER ...]: stop at system calls."),
    ("catch-forks", "catch-forks", "Stop where processes are made."),
    ("catch-execs", "catch-execs", "Stop where it becomes another program."),
    ("catch-signals", "catch-signals", "Stop where signals come to their handlers."),
    ("catch-threads", "catch-threads", "Stop where threads begin."),
    ("catch-findings", "catch-findings", "Stop where a rule is broken."),
    ("info conditions", "conditions", "What break-if, break-call and catch-calls have set."),
    ("condition-delete", "condition-delete", "condition-delete ID: forget one of those."),
    ("findings", "findings", "What the default rules find in the recording, with moments to seek."),
    ("checkpoint", "checkpoint", "Keep this moment, to rollback to."),
    ("rollback", "rollback", "rollback ID: go back to a moment that was kept."),
    ("info checkpoints", "checkpoints", "The moments that are kept."),
    ("cdelete", "cdelete", "cdelete ID: keep a moment no longer."),
    ("switch", "switch", "switch PLACE [all|once|N]: a decision goes the other way; then continue."),
    ("suppress", "suppress", "suppress PLACE|FUNCTION [all|once|N]: a statement or call is left out; then continue."),
    ("unalter", "unalter", "Alter nothing of what was asked for and is still to come."),
    ("diversion", "diversion", "What has come of what was altered, compared with the recording."),
    ("back", "back", "From a diversion back to where the recording was left."),
    ("reverse-continue", "reverse-continue", "Back to the last breakpoint, watched access or moment to stop at."),
    ("reverse-stepi", "reverse-stepi", "Back to the instruction that was executed last."),
    ("reverse-step", "reverse-step", "Back to the beginning of the line before, into calls."),
    ("reverse-next", "reverse-next", "Back to the beginning of the line before, over calls."),
    ("reverse-finish", "reverse-finish", "Back to the call that led into this function."),
]


def execute(debugger, line):
    """What LLDB says to a line."""
    result = lldb.SBCommandReturnObject()
    debugger.GetCommandInterpreter().HandleCommand(line, result)
    return (result.GetOutput() or "") + (result.GetError() or "")


def ask(debugger, line, result):
    """Has the recording's debugger carry out a line, and shows what it says."""
    target = debugger.GetSelectedTarget()
    frame = target.GetProcess().GetSelectedThread().GetSelectedFrame()
    level = frame.GetFrameID() if frame.IsValid() else 0
    answer = execute(debugger, "process plugin packet monitor wd! %d %s" % (level, line))
    # LLDB shows the packet and what came as output before its answer.
    lines = [it for it in answer.split("\n") if not it.lstrip().startswith(("packet:", "response:"))]
    head = next((number for number, it in enumerate(lines) if it.startswith(("moved", "stayed"))), None)
    if head is None:
        result.SetError(answer.strip() or "no recording answers; connect to one first")
        return
    text = "\n".join(lines[head + 1:]).strip("\n")
    if text:
        result.AppendMessage(text)
    if lines[head].startswith("moved"):
        look_again(debugger, result)


def look_again(debugger, result):
    """The program stands somewhere else, and LLDB has not moved it: the next movement ends where it begins."""
    target = debugger.GetSelectedTarget()
    enabled = [it for it in target.breakpoint_iter() if it.IsEnabled()]
    for breakpoint in enabled:
        breakpoint.SetEnabled(False)
    was = debugger.GetAsync()
    debugger.SetAsync(False)
    execute(debugger, "process continue")
    debugger.SetAsync(was)
    for breakpoint in enabled:
        breakpoint.SetEnabled(True)
    result.AppendMessage(execute(debugger, "frame select 0").rstrip("\n"))


def one(name, line):
    def run(debugger, command, result, internal):
        ask(debugger, (line + " " + command).strip(), result)

    run.__doc__ = next(about for known, _, about in COMMANDS if known == name)
    return run


def whydunit(debugger, command, result, internal):
    """Commands of Whydunit: they go back to where values were made, change the past and see what comes of it."""
    result.AppendMessage("\n".join("%-18s -- %s" % (name, about) for name, _, about in COMMANDS))


def stopped(debugger, command, result, internal):
    """Why it has stopped, where that is not LLDB's own doing."""
    ask(debugger, "stop", result)


def __lldb_init_module(debugger, internal):
    execute(debugger, "settings set plugin.process.gdb-remote.packet-timeout 86400")
    execute(debugger, "settings set target.process.disable-memory-cache true")
    execute(debugger, "command container add info -h 'What there is of slices, checkpoints and conditions.'")
    for name, line, about in COMMANDS:
        function = name.replace("-", "_").replace(" ", "_")
        globals()[function] = one(name, line)
        execute(debugger, "command script add -f %s.%s %s" % (__name__, function, name))
    for function in ("whydunit", "stopped"):
        execute(debugger, "command script add -f %s.%s %s" % (__name__, function, function))
