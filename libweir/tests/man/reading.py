"""reading.py: checks that mandoc(1) and groff(1) report no problem in a page and print it correctly."""
import re
import shutil
import subprocess

COLUMNS = 80


def install(pages, tree):
    for page in pages:
        target = tree / page.relative_path
        target.parent.mkdir(exist_ok=True)
        shutil.copy(page.path, target)


def output_of(command, directory):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60)
    return done.stdout, done.stderr


def check_text(page, text):
    """Checks the width, and that code can be copied from the printed page, without its overstrikes."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", re.sub(r".\x08", "", text))
    problems = [f"longer than {COLUMNS} columns: {line}" for line in text.splitlines() if len(line) > COLUMNS]
    lines = {line.strip() for line in text.splitlines()}
    for example in page.examples():
        problems += [f"cannot be copied: {line}" for line in example.code.splitlines()
                     if line.strip() not in lines]
    return problems


def check_mandoc(page, tree):
    out, messages = output_of(["mandoc", "-Tlint", "-W", "warning", page.relative_path], tree)
    problems = [line for line in (out + messages).splitlines() if ".so is fragile" not in line]
    if page.target:
        return problems
    text, _ = output_of(["mandoc", "-Tutf8", page.relative_path], tree)
    return problems + check_text(page, text)


def check_groff(page, tree):
    command = ["groff", "-ww", "-mdoc", "-Tutf8", f"-rLL={COLUMNS - 2}n", page.relative_path]
    text, messages = output_of(command, tree)
    return messages.splitlines() + check_text(page, text)
