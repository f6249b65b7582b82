"""The subset of the labelled set that runs inside virtual machines: packs it, and judges what weir reported of it.

labelled.toml names the cases. They are compiled on this machine. They run with its shell, tools and interpreters, which are
packed with their libraries; inside the machine there is nothing else of them.
"""
import json
import pathlib
import shlex
import shutil
import subprocess
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
SET = HERE.parent / "diagnosis"
SEVERITIES = ["info", "warn", "high"]
# The least recall, as tests/diagnosis.rs has it.
LEAST_RECALL = 0.92
# The commands of the cases' lines, beside those that a case itself says that it needs.
TOOLS = ["sh", "cat", "cp", "cut", "false", "grep", "head", "mkdir", "mv", "rm", "sed", "seq", "sleep", "sort", "tail", "tr",
         "true", "uniq", "wc", "yes"]
# The modules that the Python programs of the subset import; packed with what these import.
PYTHON_MODULES = ["os", "sys", "time", "threading", "subprocess", "signal", "encodings.utf_8", "encodings.ascii", "encodings.latin_1"]
PERL_MODULES = ["strict", "warnings", "POSIX", "Fcntl", "IO::Handle"]


class Unusable(Exception):
    """The set, or this machine, has not what the subset needs."""


def subset():
    """Returns the cases and the ordinary runs of the subset, as dictionaries in one form."""
    chosen = tomllib.loads((HERE / "labelled.toml").read_text())
    found = []
    for name in chosen["cases"]:
        folder = SET / name
        case = tomllib.loads((folder / "case.toml").read_text())
        roles = ("broken",) if name in chosen["broken_only"] else ("broken", "fixed")
        found.append(case | {"name": name, "folder": folder, "roles": roles})
    runs = {one["name"]: one for one in tomllib.loads((SET / "ordinary.toml").read_text())["run"]}
    for name in chosen["ordinary"]:
        if name not in runs:
            raise Unusable(f"ordinary.toml has no run {name!r}")
        found.append(runs[name] | {"name": f"ordinary/{name}", "run": ["sh", "-c", runs[name]["run"]], "folder": None,
                                   "roles": ("broken",)})
    return found


def output(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def pack(root, path):
    """Copies a file, at the same path below `root`, with the libraries that it needs."""
    copy = root / str(path).lstrip("/")
    if copy.exists():
        return
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, copy)
    done = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for word in done.stdout.split() if done.returncode == 0 else []:
        if word.startswith("/"):
            pack(root, pathlib.Path(word))


def pack_interpreters(root, needs):
    """Copies the modules that Python and Perl load."""
    if "python3" in needs:
        files = output(["/usr/bin/python3", "-c", f"import {', '.join(PYTHON_MODULES)}, sys\n"
                        "for one in list(sys.modules.values()):\n"
                        "    print(getattr(one, '__file__', None) or '', getattr(one, '__cached__', None) or '')"])
        loaded = [pathlib.Path(word) for word in files.split() if pathlib.Path(word).exists()]
        for file in loaded:
            pack(root, file)
        # Without this folder Python prints a warning at each start.
        os_module = next(file for file in loaded if file.name == "os.py")
        (root / str(os_module.parent).lstrip("/") / "lib-dynload").mkdir(exist_ok=True)
    if "perl" in needs:
        files = output(["/usr/bin/perl", *(f"-M{one}" for one in PERL_MODULES), "-e", 'print join("\\n", values %INC), "\\n"'])
        base = output(["/usr/bin/perl", "-MConfig", "-e", 'print $Config{archlib}']).strip()
        loaded = [pathlib.Path(word) for word in files.split()]
        for name in ("POSIX", "Fcntl", "IO"):
            loaded += [folder / f"auto/{name}/{name}.so" for folder in (pathlib.Path(base), pathlib.Path(base).with_name("perl-base"))]
            loaded += pathlib.Path("/usr/lib/x86_64-linux-gnu/perl-base").glob(f"auto/{name}/{name}.so")
        for file in loaded:
            if file.is_file():
                pack(root, file)


def build(case, where):
    """Copies a case's files, compiles its programs and prepares its data, as tests/diagnosis/runner/workspace.rs does. All
    that happens on this machine, because the emulated one is slow."""
    if case["folder"]:
        shutil.copytree(case["folder"], where)
    else:
        where.mkdir()
    lines = [case["build"]] if "build" in case else []
    lines += [f"cc -O1 -o {one} {one}.c" for one in ("broken", "fixed") if (where / f"{one}.c").exists()]
    lines += [case["prepare"]] if "prepare" in case else []
    for line in lines:
        subprocess.run(["sh", "-ec", line], cwd=where, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TOOLS": str(SET / "tools")})


def script(case, role, files):
    """Returns the shell script that traces one program in a copy of the folder `files`."""
    words = " ".join(shlex.quote(word) for word in case["fixed" if role == "fixed" else "run"])
    kind = case.get("stdout", "file")
    to = {"file": ">out", "null": ">/dev/null", "pipe": "3>../status | cat >out"}[kind]
    weir = f'weir trace --engine ebpf --json ../result.json --quiet -- {words} <{case.get("stdin", "/dev/null")} 2>../errors.txt'
    # The status of weir, not that of the pipe's reader.
    run = f"{{ {weir} 3>&-; echo $? >&3; }} {to}" if kind == "pipe" else f"{weir} {to}; echo $? >../status"
    return f"rm -rf work status result.json errors.txt\ncp -R {files} work && cd work || exit\n{run}\n"


def fill(root):
    """Fills a root directory with the subset, and what it runs with."""
    shutil.rmtree(root, ignore_errors=True)
    cases = subset()
    needs = set(TOOLS).union(*(case.get("needs", []) for case in cases))
    for tool in sorted(needs):
        found = shutil.which(tool, path="/usr/bin:/bin")
        if not found:
            raise Unusable(f"{tool} is not installed")
        pack(root, pathlib.Path(found).resolve())
        link = root / "usr/bin" / tool
        if not link.exists():
            link.symlink_to(pathlib.Path(found).resolve().name)
    pack(root, pathlib.Path("/lib64/ld-linux-x86-64.so.2"))
    pack_interpreters(root, needs)
    for number, case in enumerate(cases):
        folder = root / "labelled" / f"{number:02}"
        folder.mkdir(parents=True)
        build(case, folder / "files")
        for role in case["roles"]:
            (folder / role).write_text(script(case, role, f"/labelled/{number:02}/files"))


def findings_of(files, expected):
    """Returns the findings of one traced program, and what went wrong with the run itself."""
    if "json" not in files:
        return None, f"no result, status {files.get('status')}: {' '.join(files.get('errors', '').split())[:300]}"
    try:
        document = json.loads(files["json"])
    except ValueError as error:
        return None, f"its JSON: {error}"
    if document["engine"] != "ebpf":
        return None, f"engine {document['engine']}: {document['engine_reason']}"
    if files["status"] != expected:
        return None, f"status {files['status']}, not {expected}"
    return document["findings"], None


def judge(found):
    """Judges the subset by the rules of tests/diagnosis. `found`: the files of each traced program, by number and role."""
    result = {"cases": 0, "shown": 0, "twins": 0, "ordinary": 0, "missed": [], "false": [], "wrong": []}
    for number, case in enumerate(subset()):
        finding = case.get("finding")
        name = case["name"]
        result["cases" if finding else "ordinary"] += 1
        findings, wrong = findings_of(found.get(f"{number:02}-broken", {}), case.get("exit", 0))
        if wrong:
            result["wrong"].append(f"{name}: {wrong}")
        if not finding:
            true = case.get("true", [])
            result["false"] += [f"{name}: {one['why']}" for one in findings or []
                                if one["severity"] == "high" and one["id"] not in true or one["id"] in case.get("never", [])]
            continue
        least = SEVERITIES.index(case.get("severity", "warn"))
        shown = any(one["id"] == finding and SEVERITIES.index(one["severity"]) >= least for one in findings or [])
        result["shown"] += shown
        if not shown:
            result["missed"].append(name)
        if "fixed" not in case["roles"]:
            continue
        result["twins"] += 1
        findings, wrong = findings_of(found.get(f"{number:02}-fixed", {}), case.get("fixed_exit", 0))
        if wrong:
            result["wrong"].append(f"{name}, fixed: {wrong}")
        result["false"] += [f"{name}, fixed: {one['id']}: {one['why']}" for one in findings or [] if one["id"] == finding
                            or one["severity"] == "high" and one["id"] not in case.get("also_fixed", [])]
    return result


def failure(result):
    """Returns why the result of the subset is not good enough, or None."""
    if result["shown"] < LEAST_RECALL * result["cases"]:
        return f"labelled set: {result['shown']} of {result['cases']} faults shown"
    if result["false"]:
        return f"labelled set: {len(result['false'])} false findings"
    return f"labelled set: {result['wrong'][0]}" if result["wrong"] else None


def lines(result):
    """Returns the lines that `run` prints."""
    yield (f"    labelled set: {result['shown']} of {result['cases']} faults shown, {len(result['false'])} false findings in {result['twins']} "
           f"twins and {result['ordinary']} ordinary runs")
    for kind in ("missed", "false", "wrong"):
        for one in result[kind]:
            yield f"    {kind:<7} {one}"
