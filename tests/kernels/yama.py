"""Judges the cases of Yama (kernel.yama.ptrace_scope): at each level the program ends as alone, and weir does what the level
permits or says that Yama forbids it."""

OUTPUT = "thirteen byte\n"
STATUS = 7
PLACES = ["1-user", "2-root", "2-user", "3-root", "3-user"]
# The verbs that start the program, and those on a process that weir has not started.
COMMANDS = ["modes", "max-delay", "rescue", "coalesce", "trace", "ptrace", "sample"]
ATTACHED = ["peek", "flush", "attach"]
# The verbs that need ptrace(2) on the weir's own command.
TRACERS = ["rescue", "coalesce", "ptrace"]


def may_refuse(place, verb):
    """Returns whether Yama forbids what a verb needs."""
    level, user = place.split("-")
    if level == "3":
        return verb in TRACERS + ATTACHED
    if level == "2" and user == "user":
        return verb in TRACERS + ATTACHED
    return verb in ATTACHED and user == "user"


def judge_one(place, verb, files):
    """Returns what is wrong with a case, or None."""
    errors = " ".join(files.get("errors", "").split())[:300]
    status, program = files.get("status"), files.get("program", "")
    refuses = status == (1 if verb in ("peek", "flush") else 125)
    if refuses and not (may_refuse(place, verb) and "ama" in errors):
        return f"status {status}: {errors}"
    if verb in ATTACHED and (program, files.get("end", "").strip()) != (OUTPUT, str(STATUS)):
        return f"the program wrote {program!r} and ended with {files.get('end')}: {errors}"
    if verb in ATTACHED and not refuses and status != 0:
        return f"status {status}: {errors}"
    if verb in COMMANDS and not refuses and (status, program) != (STATUS, OUTPUT):
        return f"status {status}, output {program!r}: {errors}"
    return f"it wrote {program!r} and was refused" if verb in COMMANDS and refuses and program else None


def judge(found):
    """Returns all cases."""
    judged = []
    for place in PLACES:
        for verb in COMMANDS + ATTACHED:
            wrong = judge_one(place, verb, found.get(f"yama-{place}-{verb}", {}))
            judged.append({"name": f"yama-{place}-{verb}", "ok": wrong is None} | ({"reason": wrong} if wrong else {}))
    return judged
