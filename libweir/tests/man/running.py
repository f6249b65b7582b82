"""running.py: compiles and runs an example, and compares the result with the expected one: see man_examples.py."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile

from pages import ROOT

KINDS = {"main", "args", "stdin", "stdout", "stderr", "stdout-match", "stdout-bytes", "status", "file",
         "after", "after-lines", "files"}
ALWAYS = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include"]


def words_of(variable, fallback=""):
    return shlex.split(os.environ.get(variable, fallback))


def compile_example(example, build, program):
    source = program.with_suffix(".c")
    source.write_text(example.code + example.main + "\n")
    command = words_of("CC", "cc") + ALWAYS + words_of("CFLAGS", "-O2 -g")
    command += [str(source), str(build / "libweir.a"), "-o", str(program)]
    command += words_of("LDFLAGS") + ["-pthread", "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr.splitlines()[:8] or ["the compiler failed"] if done.returncode else []


def as_bytes(value):
    return json.loads(value).encode("latin-1")


def check_file(path, kind, value):
    if not path.exists():
        return [f"{path.name} is missing"]
    content = path.read_bytes()
    if kind == "after-lines":
        lines = content.count(b"\n")
        return [] if lines == int(value) else [f"{path.name} has {lines} lines"]
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
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        for key, value in example.expected.items():
            if key.startswith("file "):
                (directory / key[5:]).write_bytes(as_bytes(value))
        arguments = shlex.split(json.loads(example.expected.get("args", '""')))
        environment = dict(os.environ, WEIR_SPILL_DIR=str(program.parent / "spill"))
        try:
            done = subprocess.run(words_of("RUN") + [str(program)] + arguments, cwd=directory,
                                  capture_output=True, timeout=120, env=environment, **stdin)
        except subprocess.TimeoutExpired:
            return ["the example does not end"]
        return check_result(done, example.expected, directory)


def run_with_input(program, example, content):
    """Runs the example with input from a pipe and from a file, which the library reads differently."""
    from_pipe = run_example(program, example, {"input": content})
    path = program.parent / "input"
    path.write_bytes(content)
    with open(path, "rb") as file:
        from_file = run_example(program, example, {"stdin": file})
    return ([f"from a pipe: {problem}" for problem in from_pipe] +
            [f"from a file: {problem}" for problem in from_file])


def check_example(example, build):
    unknown = [f"unknown test {key}" for key, _ in example.tests if key.split(" ")[0] not in KINDS]
    if unknown or not example.tests:
        return unknown or ["the example has no expected result"]
    with tempfile.TemporaryDirectory() as directory:
        program = pathlib.Path(directory) / re.sub(r"\W+", "-", example.label)
        problems = compile_example(example, build, program)
        if problems:
            return problems
        if "stdin" in example.expected:
            return run_with_input(program, example, as_bytes(example.expected["stdin"]))
        return run_example(program, example, {"stdin": subprocess.DEVNULL})
