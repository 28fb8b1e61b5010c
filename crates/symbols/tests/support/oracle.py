# Runs inside gdb: stops a program, writes a core file, and prints what gdb itself makes of the
# frames and of expressions, one tab-separated line each, in a form that does not depend on gdb's
# formatting of values. Settings come in the environment as ORACLE_*.
import os

import gdb


def canonical(value, depth=0):
    if value.is_optimized_out:
        return "<optimised out>"
    kind = value.type.strip_typedefs()
    code = kind.code
    if code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        return canonical(value.referenced_value(), depth)
    if code == gdb.TYPE_CODE_PTR:
        return hex(int(value) & (2**64 - 1))
    if code == gdb.TYPE_CODE_FLT:
        return repr(float(value))
    if code == gdb.TYPE_CODE_ARRAY:
        low, high = kind.range()
        return "[" + ", ".join(canonical(value[i], depth + 1) for i in range(low, high + 1)) + "]"
    if code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        parts = []
        for field in kind.fields():
            if not hasattr(field, "bitpos"):
                continue  # a static member
            if field.name is not None and field.name.startswith("_vptr"):
                continue
            name = "<base>" if field.is_base_class else (field.name or "<anonymous>")
            parts.append(name + "=" + canonical(value[field], depth + 1))
        return "{" + ", ".join(parts) + "}"
    return str(int(value))


def frames():
    frame = gdb.newest_frame()
    count = 0
    while frame is not None and count < 200:
        if frame.type() == gdb.TAILCALL_FRAME:
            frame = frame.older()  # gdb's guess at calls that left nothing on the stack
            continue
        sal = frame.find_sal()
        name = frame.name() or "?"
        file = sal.symtab.filename if sal.symtab else ""
        print("FRAME\t%s\t%s\t%d\t%s" % (name, file, sal.line, hex(frame.pc())))
        frame = frame.older()
        count += 1


def run():
    gdb.execute("set confirm off")
    gdb.execute("set pagination off")
    gdb.execute("set width 0")
    gdb.execute("set debuginfod enabled off", to_string=True)
    gdb.execute("handle SIGUSR1 nostop noprint pass", to_string=True)
    place = os.environ.get("ORACLE_BREAK")
    if place:
        gdb.execute("break " + place, to_string=True)
    gdb.execute("run >/dev/null", to_string=True)
    for _ in range(int(os.environ.get("ORACLE_CONTINUE", "0"))):
        gdb.execute("continue", to_string=True)
    gdb.execute("generate-core-file " + os.environ["ORACLE_CORE"], to_string=True)
    frames()
    for line in os.environ.get("ORACLE_VALUES", "").splitlines():
        level, expression = line.split("\t")
        gdb.execute("frame " + level, to_string=True)
        try:
            text = canonical(gdb.parse_and_eval(expression))
        except gdb.error as error:
            text = "<error: %s>" % str(error).replace("\n", " ")
        print("VALUE\t%s\t%s\t%s" % (level, expression, text))
    gdb.execute("kill", to_string=True)


run()
