"""Judges what weir reported in a virtual machine. Each case is a function from the files of the case to what is wrong."""
import json
import re

NAMES = ["load", "exact-counts", "exit-threads", "sigkill", "exec", "fork", "many-descriptors", "bursts", "watchpoint", "detach"]
# Cases of eBPF only: hooks that this kernel would not need are forced.
HOOK_NAMES = ["kprobe-exec", "kprobe-exit", "totals-only"]


def streams(result, path=None, direction="out"):
    """Returns the streams of one direction, to a path if one is given."""
    found = [one for one in result["streams"] if one["direction"] == direction]
    return [one for one in found if path is None or one["path"].endswith(path)]


def sums(found):
    """Returns the calls and the bytes of streams."""
    return sum(one["calls"] for one in found), sum(one["bytes"] for one in found)


def findings(result, name):
    return [one for one in result["findings"] if one["id"] == name]


def load(files, result):
    return None if files["status"] == 0 else f"status {files['status']}"


def exact_counts(files, result):
    written, read = sums(streams(result, "/dev/null")), sums(streams(result, "/dev/zero", "in"))
    if not result["exact"]:
        return "the result is not exact"
    if (written, read) != ((4000, 4000), (1000, 17000)):
        return f"writes {written}, reads {read}"
    return None


def exit_threads(files, result):
    lost = findings(result, "lost-at-exit")
    counted = sums(streams(result, "/dev/null"))
    if counted != (4000, 4000):
        return f"4,000 writes of four threads are {counted}"
    if [one["evidence"].get("lost_bytes") for one in lost] != [11]:
        return f"11 lost bytes at the exit: {[one['evidence'] for one in lost]}"
    return None


def sigkill(files, result):
    lost = findings(result, "lost-at-kill")
    if files["status"] != 137:
        return f"status {files['status']}, not that of SIGKILL"
    if [one["evidence"].get("lost_bytes") for one in lost] != [42]:
        return f"42 lost bytes at the kill: {[one['evidence'] for one in lost]}"
    return None


def watchpoint(files, result):
    """The case sigkill also shows who wrote the lost bytes last, which a watchpoint sees."""
    lost = findings(result, "lost-at-kill")
    if not lost or "log_message" not in lost[0]["why"]:
        return f"the finding names no log_message(): {[one['why'] for one in lost]}"
    return None


def exec_(files, result):
    lost = findings(result, "lost-at-exec")
    if [one["evidence"].get("lost_bytes") for one in lost] != [9]:
        return f"9 lost bytes at execve(2): {[one['evidence'] for one in lost]}"
    return None


def fork(files, result):
    doubled = findings(result, "doubled-at-fork")
    if len(doubled) != 1:
        return f"{len(doubled)} findings doubled-at-fork"
    return None


def many_descriptors(files, result):
    found = streams(result, "/dev/null")
    wrong = [one["fd"] for one in found if (one["calls"], one["bytes"]) != (3 * one["openings"], 12 * one["openings"])]
    if sum(one["openings"] for one in found) != 100 or sums(found) != (300, 1200) or wrong:
        return f"100 descriptors with 3 writes each: {len(found)} streams, {sums(found)}, wrong {wrong}"
    return None


# Switches between sampling windows and gaps that the case `bursts` asks of eBPF.
SWITCHES = 200


def switches(timeline):
    """Returns how often weir switched between sampling windows and gaps: twice for each gap of a timeline. The time in which
    weir attaches its program again is a slice of its own, without a window before it."""
    slices = [(float(one["ts"]), float(one["dur"])) for one in json.loads(timeline)["traceEvents"] if one["name"] == "totals only"]
    number, until = 0, 0.0
    for start, length in sorted(slices):
        number += 2 if start - until > 1000 else 0  # microseconds
        until = max(until, start + length)
    return number


def bursts(files, result):
    """Sampling does not change the totals."""
    count = files.get("writes", "").strip()
    expected = int(count or 0) + 1, int(count or 0) + len(count) + 1  # the last write is that of the count itself
    total = sums(streams(result))
    switched = switches(files["timeline"]) if "timeline" in files else 0
    if result["exact"] or switched == 0:
        return "there were no sampling gaps"
    if result["engine"] == "ebpf" and switched < SWITCHES:
        return f"{switched} switches, not {SWITCHES}"
    if not count or total != expected:
        return f"{expected} calls and bytes are {total}"
    return None


def detach(files, result):
    left = files.get("left", "")
    for wanted in ("TracerPid:\t0", "programs: 0", "status: 0"):
        if wanted not in left:
            return f"after weir: {left.split()}"
    return None if streams(result, "/tmp/busy") else "no stream of the process"


def taken(files, ability):
    """Returns the hook that an ability got, from the output of --why."""
    found = re.search(rf"^ *{ability}: (.*)$", files.get("errors", ""), re.MULTILINE)
    return found.group(1) if found else None


def kprobe_exec(files, result):
    hook = taken(files, "buffers at exec")
    return exec_(files, result) if hook == "kprobe begin_new_exec" else f"the hook is {hook}"


def kprobe_exit(files, result):
    hook = taken(files, "exits")
    return exit_threads(files, result) if hook == "kprobe taskstats_exit" else f"the hook is {hook}"


def totals_only(files, result):
    """Counts are exact, and the report says what was not seen."""
    hook, counted = taken(files, "exits"), sums(streams(result, "/dev/null"))
    if hook != "tracepoint sched_process_exit (totals only)":
        return f"the hook is {hook}"
    if not any("CONFIG_TASKSTATS" in one for one in result["blind"]):
        return f"the report does not say what it misses: {result['blind']}"
    return None if counted == (4000, 4000) else f"4,000 writes of four threads are {counted}"


JUDGES = {"load": load, "exact-counts": exact_counts, "exit-threads": exit_threads, "sigkill": sigkill, "exec": exec_,
          "fork": fork, "many-descriptors": many_descriptors, "bursts": bursts, "watchpoint": watchpoint, "detach": detach,
          "kprobe-exec": kprobe_exec, "kprobe-exit": kprobe_exit, "totals-only": totals_only}


# Cases of weir run, and the output that each must have.
RUN_OUTPUTS = {"run-line": "thirteen byte\n", "run-max-delay": "thirteen byte\n",
               "run-max-delay-computing": "thirteen byte\n", "run-rescue": "thirteen byte\n", "run-fix-fork": "twelve bytes", "run-coalesce": "t" * 3000}
# Writes of 3,000 bytes with --coalesce, in blocks of 4 KiB or more, and some for other descriptors.
FEW_WRITES = 20


def judge_run(name, files):
    """Returns whether a case of weir run is right, and why not; None if weir says that this kernel cannot."""
    errors = " ".join(files.get("errors", "").split())[:400]
    if name == "run-coalesce" and files.get("status") == 125 and "syscall user dispatch" in errors:
        return None, errors
    expected = 137 if name in ("run-line", "run-max-delay", "run-rescue") else 0
    if files.get("status") != expected:
        return False, f"status {files.get('status')}, not {expected}: {errors}"
    if files.get("out") != RUN_OUTPUTS[name]:
        return False, f"{len(files.get('out', ''))} bytes of output, beginning {files.get('out', '')[:40]!r}: {errors}"
    if name in ("run-line", "run-max-delay", "run-max-delay-computing") and not files.get("early"):
        return False, "nothing was written before the end"
    if name == "run-rescue" and files.get("early"):
        return False, "the bytes were not pending"
    if name == "run-coalesce" and not 0 < int(files.get("writes") or 0) <= FEW_WRITES:
        return False, f"{files.get('writes')} writes of 3,000 bytes"
    return True, None


def judge_runs(found):
    """Returns all cases of weir run."""
    judged = []
    for name in RUN_OUTPUTS:
        ok, why = judge_run(name, found.get(name, {}))
        judged.append({"name": name, "ok": ok} | ({"reason": why} if why else {}))
    return judged


# Cases whose counts Linux 7 can make too low, because it preempts programs. That is no failure there if the report says so.
COUNTED = {"exact-counts", "exit-threads", "many-descriptors", "bursts", "kprobe-exit", "totals-only"}


def judge_one(engine, name, files, major):
    """Returns whether the case is right on a Linux of this major version, and why not."""
    if not files or "json" not in files:
        errors = " ".join(files.get("errors", "").split())[:400]
        return False, f"no result, status {files.get('status')}: {errors}"
    try:
        result = json.loads(files["json"])
    except ValueError as error:
        return False, f"its JSON: {error}"
    if result["engine"] != engine:
        return False, f"engine {result['engine']}: {result['engine_reason']}"
    wrong = JUDGES[name](files, result)
    skipped = [one for one in result["blind"] if "the kernel skipped" in one]
    if wrong and major >= 7 and name in COUNTED and not result["exact"] and skipped:
        return None, f"{skipped[0]} ({wrong})"
    return wrong is None, wrong


def judge(engine, found, major):
    """Returns all cases of an engine on a Linux of this major version."""
    judged = []
    for name in NAMES + (HOOK_NAMES if engine == "ebpf" else []):
        ok, why = judge_one(engine, name, found.get("sigkill" if name == "watchpoint" else name, {}), major)
        judged.append({"name": name, "ok": ok} | ({"reason": why} if why else {}))
    return judged
