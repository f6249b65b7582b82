"""reading.py: mandoc(1) and groff(1) find nothing wrong with a page, and what they print is right."""
import re
import shutil
import subprocess

COLUMNS = 80


def install(pages, tree):
    for page in pages:
        place = tree / page.place
        place.parent.mkdir(exist_ok=True)
        shutil.copy(page.path, place)


def output_of(command, directory):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60)
    return done.stdout, done.stderr


def check_text(page, text):
    """Without the overstriking that makes bold and underlined. Code must be such that it can be copied."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", re.sub(r".\x08", "", text))
    problems = [f"longer than {COLUMNS} columns: {line}" for line in text.splitlines() if len(line) > COLUMNS]
    lines = {line.strip() for line in text.splitlines()}
    for example in page.examples():
        problems += [f"cannot be copied: {line}" for line in example.code.splitlines()
                     if line.strip() not in lines]
    return problems


def check_mandoc(page, tree):
    said, more = output_of(["mandoc", "-Tlint", "-W", "warning", page.place], tree)
    problems = [line for line in (said + more).splitlines() if ".so is fragile" not in line]
    if page.target:
        return problems
    text, _ = output_of(["mandoc", "-Tutf8", page.place], tree)
    return problems + check_text(page, text)


def check_groff(page, tree):
    command = ["groff", "-ww", "-mdoc", "-Tutf8", f"-rLL={COLUMNS - 2}n", page.place]
    text, said = output_of(command, tree)
    return said.splitlines() + check_text(page, text)
