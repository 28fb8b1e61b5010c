"""Whydunit's commands in gdb. `whydunit debug` reads this by itself; `help whydunit` lists them."""

import gdb


def ask(line, moves=True):
    """Has the recording's debugger carry out a line, and shows what it says."""
    try:
        frame = gdb.selected_frame().level()
    except gdb.error:
        frame = 0
    answer = gdb.execute("monitor wd %d %s" % (frame, line), to_string=True)
    head, _, text = answer.partition("\n")
    text = text.rstrip("\n")
    if text:
        print(text)
    if moves and head.startswith("moved"):
        look_again(head.split()[1])


def look_again(thread):
    """The program stands somewhere else, and gdb has not moved it."""
    for forget in ("maintenance flush register-cache", "maintenance flush dcache"):
        try:
            gdb.execute(forget, to_string=True)
        except gdb.error:
            pass
    gdb.execute("info threads", to_string=True)
    for known in gdb.selected_inferior().threads():
        if int(thread) in known.ptid[1:]:
            known.switch()
    gdb.execute("frame")


def number_of(text):
    """A number as gdb evaluates it, so that expressions of the program can be said."""
    return "%#x" % (int(gdb.parse_and_eval(text).cast(gdb.lookup_type("unsigned long"))))


def value_of(text):
    """An expression as an address and a size, if gdb knows where it is: gdb knows more languages."""
    try:
        value = gdb.parse_and_eval(text)
        if value.address is not None:
            return "[%#x,%d]" % (int(value.address.cast(gdb.lookup_type("unsigned long"))), value.type.sizeof)
    except gdb.error:
        pass
    return text


class Group(gdb.Command):
    """Commands of Whydunit: they go back to where values were made, change the past and see what comes of it.

    help COMMAND says more about each: when, seek, origin, why, instance, slice, prune, record, sbreak, sdelete,
    info slices, sstep, rsstep, break-if, break-call, catch-calls, catch-forks, catch-execs, catch-signals, catch-threads, catch-findings,
    findings, checkpoint, rollback, info checkpoints, cdelete, switch, suppress, unalter, diversion, back."""

    def __init__(self):
        super().__init__("whydunit", gdb.COMMAND_USER, gdb.COMPLETE_NONE)

    def invoke(self, argument, from_tty):
        gdb.execute("help whydunit")


class Plain(gdb.Command):
    """A command that hands its arguments on as they are."""

    def __init__(self, name, about, complete=gdb.COMPLETE_NONE, line=None, words=()):
        self.__doc__ = about
        self.line, self.words, self.complete_as = line or name, words, complete
        if words:
            super().__init__(name, gdb.COMMAND_USER)
        else:
            super().__init__(name, gdb.COMMAND_USER, complete)

    def complete(self, text, word):
        if " " in text.strip() or text.endswith(" "):
            return [known for known in self.words if known.startswith(word)]
        return self.complete_as

    def invoke(self, argument, from_tty):
        ask((self.line + " " + argument).strip())


# A class attribute named `complete` decides how gdb completes; those without words must not have one.
class Simple(gdb.Command):
    """A command that hands its arguments on as they are, completed by gdb."""

    def __init__(self, name, about, complete=gdb.COMPLETE_NONE, line=None):
        self.__doc__ = about
        self.line = line or name
        super().__init__(name, gdb.COMMAND_USER, complete)

    def invoke(self, argument, from_tty):
        ask((self.line + " " + argument).strip())


class Origin(gdb.Command):
    """Go back to the write that made the value of an expression.
Usage: origin EXPR
       origin
Without EXPR: on from there, to what made the value that the instruction here hands on."""

    def __init__(self):
        super().__init__("origin", gdb.COMMAND_USER, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        ask("origin %s as %s" % (value_of(argument), argument) if argument else "origin")


class BreakCall(gdb.Command):
    """Stop at calls of a function, also of a library, where they are made.
Usage: break-call FUNCTION
       break-call FUNCTION if argN==VALUE      its N-th argument, from 1 on
       break-call FUNCTION if ret==VALUE       what it returns
       break-call FUNCTION if write|read|access ADDRESS [SIZE]
VALUE and ADDRESS are expressions of the program, taken as they are now."""

    def __init__(self):
        super().__init__("break-call", gdb.COMMAND_USER, gdb.COMPLETE_LOCATION)

    def invoke(self, argument, from_tty):
        function, _, test = argument.partition(" if ")
        if "==" in test:
            what, value = test.split("==", 1)
            test = "%s==%s" % (what.strip(), number_of(value))
        elif test:
            kind, address, *size = test.split()
            test = " ".join([kind, number_of(address)] + [number_of(it) for it in size])
        ask("break-call " + function.strip() + (" if " + test if test else ""))


HOW_OFTEN = """
all: the next execution and all behind it; once: the next one; N: the N-th of the recording.
Then `continue`: the program comes to it and leaves the recording there. Breakpoints stop it as
before; at its end it is compared with the recording. Going backwards, or to any moment, leaves it."""

# Some answers take long, and gdb would give the connection up.
gdb.execute("set remotetimeout 86400")

Group()
Origin()
BreakCall()
Simple("when", "The moment that is looked at, in the form that all commands take.")
Simple("seek", "Go to a moment.\nUsage: seek PLACE#N | @TICK | @TICK:0xPC | start | crash | end", gdb.COMPLETE_LOCATION)
Simple("why", "What led here: the statements that this one depends on, the nearest first.")
Simple("instance", "How often a place has been executed up to here.\nUsage: instance FILE:LINE", gdb.COMPLETE_LOCATION)
Simple("slice", """A backward dynamic slice, numbered: what a value was made from, across threads.
Usage: slice STATEMENT [N] [VARIABLE | ADDRESS SIZE | $REGISTER] ...
STATEMENT is FILE:LINE, `here`, or any moment; N its execution, the last if not said. Without a value it is
about everything that the statement uses.""", gdb.COMPLETE_LOCATION)
Simple("info slices", "The slices, and between which places they look.", line="slices")
Simple("show-slice", "The statements of a slice.\nUsage: show-slice ID", line="show")
Simple("prune", "Leave out of a slice what comes from these values.\nUsage: prune ID VALUE ...", gdb.COMPLETE_SYMBOL)
Plain("record", """Slices look only at what happens between these places.
Usage: record FILE:LINE on
       record FILE:LINE off
       record off                  look at everything again""", gdb.COMPLETE_LOCATION, words=("on", "off"))
Simple("sbreak", "Stop at exactly the executions in a slice.\nUsage: sbreak ID S1 S2 ...\n       sbreak all ID")
Simple("sdelete", "Forget a slice and its breakpoints.\nUsage: sdelete ID")
Simple("sstep", "To the next execution in a slice, the last one made if not said.\nUsage: sstep [ID]")
Simple("rsstep", "To the previous execution in a slice.\nUsage: rsstep [ID]")
Simple("break-if", """Stop where a condition holds. It is asked on the recording's side, not by gdb.
Usage: break-if PLACE if CONDITION""", gdb.COMPLETE_LOCATION)
Simple("catch-calls", "Stop at system calls.\nUsage: catch-calls [NUMBER ...]")
Simple("catch-forks", "Stop where processes are made. `whydunit debug --process N` debugs one of them.")
Simple("catch-execs", "Stop where it becomes another program.")
Simple("catch-signals", "Stop where signals come to their handlers.")
Simple("catch-threads", "Stop where threads begin.")
Simple("catch-findings", "Stop where a rule is broken.")
Simple("info conditions", "What break-if, break-call and catch-calls have set.", line="conditions")
Simple("condition-delete", "Forget what break-if, break-call or catch-calls has set.\nUsage: condition-delete ID")
Simple("findings", "What the default rules find in the recording, with moments to `seek`.")
Simple("checkpoint", "Keep this moment, to `rollback` to. Executions have the same numbers behind it.")
Simple("rollback", "Go back to a moment that was kept.\nUsage: rollback ID")
Simple("info checkpoints", "The moments that are kept.", line="checkpoints")
Simple("cdelete", "Keep a moment no longer.\nUsage: cdelete ID")
Plain("switch", "A decision goes the other way.\nUsage: switch FILE:LINE [all|once|N]" + HOW_OFTEN,
      gdb.COMPLETE_LOCATION, words=("all", "once"))
Plain("suppress", "A statement, or the call of a function, is left out.\nUsage: suppress FILE:LINE|FUNCTION [all|once|N]"
      + HOW_OFTEN, gdb.COMPLETE_LOCATION, words=("all", "once"))
Simple("unalter", "Alter nothing of what was asked for and is still to come.")
Simple("diversion", "What has come of what was altered, compared with the recording.")
Simple("back", "From a diversion back to where the recording was left.")


def stopped(event):
    """Says why it has stopped where that is not gdb's own doing."""
    try:
        ask("stop", moves=False)
    except gdb.error:
        pass


gdb.events.stop.connect(stopped)
