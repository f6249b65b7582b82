#!/usr/bin/env python3
"""man_examples.py BUILD: the manual pages of ../man agree with the headers, and their examples work.

One page documents each function of weir.h, with the header's prototype, and man(1) finds it by the function's name.
Structure members and constants are in the pages. mandoc(1) and groff(1), where they are installed, report no
problem. Every example is compiled and run. Comment lines before it give its input and the expected result:
  .\\" test main: CODE         a line appended to the example, which makes it a program
  .\\" test args: "A B"        arguments
  .\\" test stdin: "JSON"      standard input, once from a pipe, once from a file
  .\\" test stdout: "JSON"     also stderr; stdout-match: "REGULAR EXPRESSION"; stdout-bytes: N
  .\\" test status: N          exit status, by default 0
  .\\" test file NAME: "JSON"  content of a file before the run
  .\\" test after NAME: "JSON" content of a file after the run; after-lines NAME: N
  .\\" test files: ["NAME"]    all files after the run
Strings are bytes as Latin-1.
"""
import pathlib
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "man"))
import content  # noqa: E402
import reading  # noqa: E402
import running  # noqa: E402
from pages import ROOT, Header, Page  # noqa: E402

counts = {"passed": 0, "failed": 0, "skipped": 0}


def count(label, problems):
    counts["failed" if problems else "passed"] += 1
    for problem in problems:
        print(f"FAILED  {label}: {problem}")


def check_content(pages, links):
    header = Header(ROOT / "include" / "weir.h")
    for checks in (content.check_functions(header, pages), content.check_links(pages, links),
                   content.check_words(header, pages), content.check_differences(pages),
                   content.check_examples_exist(pages)):
        for label, problems in checks:
            count(label, problems)


def check_reading(pages, links):
    with tempfile.TemporaryDirectory() as directory:
        tree = pathlib.Path(directory)
        reading.install(pages + links, tree)
        for tool, check, of in (("mandoc", reading.check_mandoc, pages + links),
                                ("groff", reading.check_groff, pages)):
            if not shutil.which(tool):
                print(f"skipped reading by {tool}: it is not installed")
                counts["skipped"] += 1
                continue
            for page in of:
                count(f"{page.name} by {tool}", check(page, tree))


def check_examples(pages, build):
    for page in pages:
        for example in page.examples():
            count(example.label, running.check_example(example, build))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    every = [Page(path) for path in sorted((ROOT / "man").glob("*.[37]"))]
    pages, links = [page for page in every if not page.target], [page for page in every if page.target]
    check_content(pages, links)
    check_reading(pages, links)
    check_examples(pages, pathlib.Path(sys.argv[1]).resolve())
    print("man: {passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] or not counts["passed"] else 0


sys.exit(main())
