"""tr: the same bytes as the system's tr, for many sets and kinds of input."""
import os
import random
import subprocess

from harness import (ends_at_closed_pipe, fails, fails_on_full_device, read_within, refuses, run_command,
                     running, succeeds, terminal)

SETS = [("a", "w"), ("a-z", "A-Z"), ("A-Za-z", "N-ZA-Mn-za-m"), ("\\n", " "), ("\\000-\\037", "."),
        ("aa", "xy"), ("a-", "b+"), ("-a", "+b"), ("abc", "z"), ("a", "xyz"), ("\\\\", "/"), ("a\\-z", "b_y"),
        ("\\101\\060", "\\102\\061"), ("\\0-\\377", "\\1-\\377\\0"), ("a-cx-z", "x-za-c"), ("[a]", "(b)"),
        ("a-e", "xy"), ("\\400\\18", "abcd"), ("", "")]


def table_of_many_runs():
    """Returns sets that map the bytes to a random permutation, so that neighbours have different distances."""
    order = random.Random(5).sample(range(256), 256)
    octal = "".join(f"\\{byte:03o}" for byte in order)
    return "\\0-\\377", octal


def inputs():
    some = random.Random(7)
    for length in 0, 1, 7, 63, 64, 65, 127, 4095, 4096, 4097, 65535, 65536, 65537, 131072, 400_001:
        yield some.randbytes(length)
    yield b"the quick brown fox\n" * 30_000


def same_as_system(set1, set2, given):
    system = run_command(["tr", "--", set1, set2], stdin=given)
    assert system.status == 0, (set1, set2, system)
    assert succeeds("tr", "--", set1, set2, stdin=given) == system.out, (set1, set2, len(given))


def test_same_bytes_as_the_system():
    all_bytes = bytes(range(256)) * 5
    for set1, set2 in SETS:
        same_as_system(set1, set2, all_bytes)


def test_same_bytes_at_any_length():
    for given in inputs():
        for set1, set2 in ("a-z", "A-Z"), ("A-Za-z", "N-ZA-Mn-za-m"), table_of_many_runs():
            same_as_system(set1, set2, given)


def test_from_a_file_and_from_a_pipe_in_pieces():
    given = random.Random(3).randbytes(1_000_000)
    expected = run_command(["tr", "a-z", "A-Z"], stdin=given).out
    with open("in", "wb") as file:
        file.write(given)
    with open("in", "rb") as file:
        assert succeeds("tr", "a-z", "A-Z", stdin=file) == expected
    with running("tr", "a-z", "A-Z", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        got, at = b"", 0
        pieces = [1, 5, 4095, 70_000, 3]
        while at < len(given):
            size = pieces[at % len(pieces)]
            child.stdin.write(given[at:at + size])
            child.stdin.flush()
            at += size
            got += read_within(child.stdout.fileno(), 0)
        child.stdin.close()
        got += child.stdout.read()
        assert got == expected and child.wait() == 0


def test_lines_are_written_to_a_terminal_one_by_one():
    with terminal() as (master, slave):
        with running("tr", "a-z", "A-Z", stdin=subprocess.PIPE, stdout=slave) as child:
            for line in b"first\n", b"second\n":
                child.stdin.write(line)
                child.stdin.flush()
                assert read_within(master, 20, len(line)) == line.upper()


def test_bad_arguments():
    for arguments in [], ["a"], ["a", "b", "c"], ["z-a", "b"], ["[:lower:]", "x"], ["a", "[b*5]"], ["a", ""]:
        refuses("tr", *arguments)


def test_errors():
    fails_on_full_device("tr", "a", "b", stdin=b"a" * 10)
    fails_on_full_device("tr", "a", "b", stdin=b"a" * 1_000_000)
    ends_at_closed_pipe("tr", "a", "b", stdin=b"a" * 1_000_000)
    directory = os.open(".", os.O_RDONLY)
    fails("tr", "a", "b", stdin=directory, naming=["standard input", "Is a directory"])
    os.close(directory)
