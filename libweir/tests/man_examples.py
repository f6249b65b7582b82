#!/usr/bin/env python3
"""man_examples.py BUILD: the manual pages of ../man say what is there, and their examples work.

Every function of weir.h is named by one page, with the header's prototype, and found by its own name. Members of
structures and constants are in the page that they belong to. mandoc(1) and groff(1), where they are installed, find
nothing wrong. Every example is compiled, run, and compared with what comment lines before it expect:
  .\\" test main: CODE         a line behind the example, which makes a program of it
  .\\" test args: A B          arguments                .\\" test stdin: "JSON"      as a pipe and as a file
  .\\" test stdout: "JSON"     also stderr; stdout-match: "REGULAR EXPRESSION"; stdout-bytes: N
  .\\" test status: N          0 if it is not there
  .\\" test file NAME: "JSON"  a file before            .\\" test after NAME: "JSON"  the same after; after-lines: N
  .\\" test files: ["NAME"]    all files after
Strings are bytes as Latin-1.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = 80
NOT_FOR_PROGRAMS = {"WEIR_H", "WEIR_LIKELY", "WEIR_LOAD", "WEIR_PUBLISH", "WEIR_ONE_THREAD"}
MEMBERS = {  # structure: the page that explains its members
    "weir_options": "weir_open.3",
    "weir_callbacks": "weir_open.3",
    "weir_stats": "weir_error.3",
    "weir_recovered": "weir_recover.3",
    "weir_head": "libweir.7",
}
counts = {"passed": 0, "failed": 0, "skipped": 0}


def judge(label, problems):
    counts["failed" if problems else "passed"] += 1
    for problem in problems:
        print(f"FAILED  {label}: {problem}")


def skip(label, why):
    counts["skipped"] += 1
    print(f"skipped {label}: {why}")


# ---- the header ----------------------------------------------------------------------------------------


def squeeze(text):
    """One way to write a declaration."""
    text = re.sub(r"\s+", " ", text)
    return re.sub(r" ?([*(),]) ?", r"\1", text).strip()


class Header:
    def __init__(self, path):
        text = re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S)
        declaration = r"^(?:static inline )?((?:const )?\w[\w ]*?[ *]+)(weir_\w+)(\([^;{]*?\))(?:\s*[;{]|\s*#if)"
        self.functions = {name: squeeze(f"{result} {name}{arguments}")
                          for result, name, arguments in re.findall(declaration, text, re.M)}
        self.constants = set(re.findall(r"^\s*(WEIR_\w+)(?: =|,|\n\})", text, re.M))
        self.constants |= set(re.findall(r"^#define (WEIR_\w+)", text, re.M)) - NOT_FOR_PROGRAMS
        self.members = {name: self.members_of(body)
                        for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.M | re.S)}

    @staticmethod
    def members_of(body):
        names = re.findall(r"\(\*(\w+)\)", body)
        for line in re.sub(r"\(\*.*", "", body).split(";"):
            names += re.findall(r"(\w+)(?:\[\d+\])?\s*(?=,|$)", line.strip())
        return names


# ---- the pages -----------------------------------------------------------------------------------------


def plain(line):
    """A line of a display as it is read."""
    for escape, meaning in (("\\&", ""), ("\\-", "-"), ("\\(aq", "'"), ("\\(ga", "`"), ("\\(ha", "^"),
                            ("\\(ti", "~"), ("\\e", "\\")):
        line = line.replace(escape, meaning)
    return line


class Example:
    def __init__(self, page, number, code, tests):
        self.label = f"{page}, example {number}"
        self.code = code
        self.tests = tests
        self.main = "\n".join(value for key, value in tests if key == "main")
        self.expected = {key: value for key, value in tests if key != "main"}


class Page:
    def __init__(self, path):
        self.path = path
        self.name = path.name
        self.text = path.read_text()
        self.target = self.text.split()[1] if self.text.startswith(".so ") else None

    def section(self, title):
        found = re.search(rf"^\.Sh {title}\n(.*?)(?=^\.Sh |\Z)", self.text, re.M | re.S)
        return found.group(1) if found else ""

    def names(self):
        return re.findall(r"^\.Nm (\S+)", self.section("NAME"), re.M)

    def prototypes(self):
        """What SYNOPSIS says, in the header's words."""
        found, result, name, arguments = {}, "", None, []
        for line in self.section("SYNOPSIS").splitlines():
            macro, *words = shlex.split(line)
            if macro == ".Ft":
                result = words[0]
            elif macro == ".Fn":
                found[words[0]] = squeeze(f"{result} {words[0]}({', '.join(words[1:])})")
            elif macro == ".Fo":
                name, arguments = words[0], []
            elif macro == ".Fa":
                arguments += words
            elif macro == ".Fc":
                found[name] = squeeze(f"{result} {name}({', '.join(arguments)})")
        return found

    def examples(self):
        found, tests, code = [], [], None
        for line in self.section("EXAMPLES").splitlines():
            test = re.match(r'\.\\" test ([^:]+):(?: (.*))?$', line)
            if test:
                tests.append((test.group(1), test.group(2) or ""))
            elif line.startswith(".Bd -literal"):
                code = []
            elif line == ".Ed" and code is not None:
                found.append(Example(self.name, len(found) + 1, "\n".join(code) + "\n", tests))
                tests, code = [], None
            elif code is not None:
                code.append(plain(line))
        return found


# ---- pages against the header --------------------------------------------------------------------------


def check_functions(header, pages):
    documented = {}
    for page in pages:
        for name in page.names():
            documented.setdefault(name, []).append(page)
    for function, prototype in sorted(header.functions.items()):
        where = documented.get(function, [])
        problems = [] if len(where) == 1 else [f"named by {[page.name for page in where]}, not by one page"]
        for page in where:
            said = page.prototypes().get(function)
            if said != prototype:
                problems.append(f"{page.name} has {said}, the header {prototype}")
        judge(function, problems)
    unknown = [f"{page.name} names it" for name, where in documented.items() for page in where
               if page.name.endswith(".3") and name not in header.functions]
    judge("names that the header has not", unknown)


def check_links(pages, links):
    """man(1) finds a page by every name in it, but looks for files."""
    wanted = {f"{name}.3": f"man3/{page.name}" for page in pages for name in page.names()
              if page.name.endswith(".3") and f"{name}.3" != page.name}
    there = {page.name: page.target for page in links}
    judge("link pages", [f"{name} leads to {there.get(name)}, not to {wanted.get(name)}"
                         for name in sorted(set(wanted) | set(there)) if wanted.get(name) != there.get(name)])
    names = {page.name for page in pages + links}
    judge("references", [f"{page.name}: {name}({section}) is no page" for page in pages
                         for name, section in re.findall(r"\bXr (\S*weir\S*) (\d)", page.text)
                         if f"{name}.{section}" not in names])


def check_words(header, pages, other_header):
    by_name = {page.name: page.text for page in pages}
    for structure, page in MEMBERS.items():
        text = by_name.get(page, "")
        judge(f"members of {structure}", [f"{member} is not in {page}" for member in header.members[structure]
                                          if not re.search(rf"\b{member}\b", text)])
    everything = "\n".join(by_name.values())
    judge("constants of the header", [f"{name} is in no page" for name in sorted(header.constants)
                                      if not re.search(rf"\b{name}\b", everything)])
    environment = set(re.findall(r"getenv\(\"(WEIR_\w+)\"\)", sources()))
    known = header.constants | set(re.findall(r"WEIR_\w+", other_header)) | environment
    judge("constants of the pages", [f"{page.name}: {name} is not in the header" for page in pages
                                     for name in sorted(set(re.findall(r"\bWEIR_[A-Z_]+\b", page.text)))
                                     if name not in known and "\n.Dt " + name + " " not in page.text])


def check_differences(pages, stdio_header):
    """weir-stdio(7) has an item for each that the header's first comment has."""
    page = next((page for page in pages if page.name == "weir-stdio.7"), None)
    said = len(re.findall(r"^\.It$", page.section("WHAT DIFFERS"), re.M)) if page else 0
    known = len(re.findall(r"^ \*\s+\d+\. ", stdio_header, re.M))
    judge("differences from stdio", [] if said == known > 0 else [f"{said} in the page, {known} in the header"])


def sources():
    return "\n".join(path.read_text() for path in sorted((ROOT / "src").glob("*.c")))


# ---- how they read -------------------------------------------------------------------------------------


def output_of(command, directory):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60)
    return done.stdout, done.stderr


def as_read(text):
    """Without the overstriking that makes bold and underlined."""
    return re.sub(r"\x1b\[[0-9;]*m", "", re.sub(r".\x08", "", text))


def check_reading(formatter, page, text):
    problems = [f"{formatter}: longer than {COLUMNS} columns: {line}" for line in text.splitlines()
                if len(line) > COLUMNS]
    lines = {line.strip() for line in text.splitlines()}
    for example in page.examples():
        problems += [f"{formatter}: cannot be copied: {line}" for line in example.code.splitlines()
                     if line.strip() not in lines]
    return problems


def install(pages, tree):
    for page in pages:
        folder = tree / f"man{page.name[-1]}"
        folder.mkdir(exist_ok=True)
        shutil.copy(page.path, folder)


def check_mandoc(pages, tree):
    if not shutil.which("mandoc"):
        skip("lint", "mandoc is not installed")
        return
    for page in pages:
        place = f"man{page.name[-1]}/{page.name}"
        said, more = output_of(["mandoc", "-Tlint", "-W", "warning", place], tree)
        problems = [line for line in (said + more).splitlines() if ".so is fragile" not in line]
        if not page.target:
            text, _ = output_of(["mandoc", "-Tutf8", place], tree)
            problems += check_reading("mandoc", page, as_read(text))
        judge(f"{page.name} by mandoc", problems)


def check_groff(pages, tree):
    if not shutil.which("groff"):
        skip("groff", "it is not installed")
        return
    for page in pages:
        text, said = output_of(["groff", "-ww", "-t", "-mdoc", "-Tutf8", f"-rLL={COLUMNS - 2}n",
                                f"man{page.name[-1]}/{page.name}"], tree)
        problems = said.splitlines() + check_reading("groff", page, as_read(text))
        judge(f"{page.name} by groff", problems)


# ---- examples ------------------------------------------------------------------------------------------


def words_of(name, otherwise=""):
    return shlex.split(os.environ.get(name, otherwise))


def compile_example(example, build, program):
    source = program.with_suffix(".c")
    source.write_text(example.code + example.main + "\n")
    command = words_of("CC", "cc") + ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include"]
    command += words_of("CFLAGS", "-O2 -g") + [str(source), str(build / "libweir.a"), "-o", str(program)]
    done = subprocess.run(command + words_of("LDFLAGS") + ["-pthread", "-lm"], capture_output=True, text=True)
    return done.stderr.splitlines()[:8] or ["the compiler failed"] if done.returncode else []


def as_bytes(value):
    return json.loads(value).encode("latin-1")


def check_file(path, key, value):
    if not path.exists():
        return [f"{path.name} is not there"]
    content = path.read_bytes()
    if key == "after-lines":
        return [] if content.count(b"\n") == int(value) else [f"{path.name} has {content.count(10)} lines"]
    return [] if content == as_bytes(value) else [f"{path.name} is {content[:200]!r}"]


def check_result(done, expected, directory):
    problems = []
    status = int(expected.get("status", 0))
    if done.returncode != status:
        problems.append(f"status {done.returncode}, not {status}; {done.stderr[:2000]!r}")
    for key, value in expected.items():
        kind, _, name = key.partition(" ")
        if kind in ("stdout", "stderr") and getattr(done, kind) != as_bytes(value):
            problems.append(f"{kind} {getattr(done, kind)[:200]!r}")
        elif kind == "stdout-match" and not re.search(as_bytes(value), done.stdout):
            problems.append(f"stdout {done.stdout[:200]!r}")
        elif kind == "stdout-bytes" and len(done.stdout) != int(value):
            problems.append(f"{len(done.stdout)} bytes of stdout")
        elif kind in ("after", "after-lines"):
            problems += check_file(directory / name, kind, value)
        elif kind == "files" and sorted(path.name for path in directory.iterdir()) != json.loads(value):
            problems.append(f"files {sorted(path.name for path in directory.iterdir())}")
    return problems


def run_example(program, example, stdin):
    with tempfile.TemporaryDirectory() as place:
        directory = pathlib.Path(place)
        for key, value in example.expected.items():
            if key.startswith("file "):
                (directory / key[5:]).write_bytes(as_bytes(value))
        command = words_of("RUN") + [str(program)] + shlex.split(json.loads(example.expected.get("args", '""')))
        environment = dict(os.environ, WEIR_SPILL_DIR=str(program.parent / "spill"))
        try:
            done = subprocess.run(command, cwd=directory, capture_output=True, timeout=120, env=environment, **stdin)
        except subprocess.TimeoutExpired:
            return ["it does not end"]
        return check_result(done, example.expected, directory)


KINDS = {"main", "args", "stdin", "stdout", "stderr", "stdout-match", "stdout-bytes", "status", "file", "after",
         "after-lines", "files"}


def check_example(example, build, place):
    unknown = [f"unknown test {key}" for key, _ in example.tests if key.split(" ")[0] not in KINDS]
    if unknown or not example.tests:
        return unknown or ["nothing says what it is expected to do"]
    program = place / re.sub(r"\W+", "-", example.label)
    problems = compile_example(example, build, program)
    if problems:
        return problems
    if "stdin" not in example.expected:
        return run_example(program, example, {"stdin": subprocess.DEVNULL})
    content = as_bytes(example.expected["stdin"])
    problems = run_example(program, example, {"input": content})
    input_file = place / "input"
    input_file.write_bytes(content)
    with open(input_file, "rb") as file:
        return problems + run_example(program, example, {"stdin": file})


def check_examples(pages, build):
    for page in pages:
        examples = page.examples()
        if page.name.endswith(".3"):
            judge(f"examples of {page.name}", [] if examples else ["there is none"])
        for example in examples:
            with tempfile.TemporaryDirectory() as place:
                judge(example.label, check_example(example, build, pathlib.Path(place)))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    every = [Page(path) for path in sorted((ROOT / "man").glob("*.[37]"))]
    pages, links = [p for p in every if not p.target], [p for p in every if p.target]
    header = Header(ROOT / "include" / "weir.h")
    others = "\n".join(path.read_text() for path in (ROOT / "include").glob("*/*.h"))
    check_functions(header, pages)
    check_links(pages, links)
    check_words(header, pages, others)
    check_differences(pages, (ROOT / "include" / "weir" / "stdio.h").read_text())
    with tempfile.TemporaryDirectory() as place:
        tree = pathlib.Path(place)
        install(every, tree)
        check_mandoc(every, tree)
        check_groff(pages, tree)
    check_examples(pages, build)
    print("man: {passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] or not counts["passed"] else 0


sys.exit(main())
