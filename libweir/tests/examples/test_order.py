"""mixed, prompt, dots: order and time of the output, to a file, a pipe and a terminal."""
import os
import subprocess
import time

from harness import (content, ends_at_closed_pipe, fails, fails_on_full_device, read_within, refuses, run,
                     running, succeeds, terminal)


def mixed_lines(count):
    return b"".join(b"%d: weir_printf\n%d: write(2), into the same descriptor\n" % (i, i)
                    for i in range(1, count + 1))


def test_mixed_keeps_the_order_in_a_file_and_a_pipe():
    for count in 0, 1, 3, 2000:
        with open("f", "wb") as file:
            succeeds("mixed", count, stdout=file)
        assert content("f") == mixed_lines(count)
        assert succeeds("mixed", count) == mixed_lines(count)


def test_mixed_appends_in_order():
    with open("f", "wb") as file:
        file.write(b"before\n")
        file.flush()
        succeeds("mixed", stdout=file)
    assert content("f") == b"before\n" + mixed_lines(3)


def test_mixed_keeps_the_order_on_a_terminal():
    with terminal() as (master, slave), running("mixed", stdout=slave) as child:
        expected = mixed_lines(3)
        assert read_within(master, 20, len(expected)) == expected and child.wait() == 0


def test_mixed_errors():
    fails_on_full_device("mixed")
    ends_at_closed_pipe("mixed")
    refuses("mixed", "x")
    refuses("mixed", "1", "2")


QUESTION = b"Who is there? "


def test_prompt_is_written_before_the_answer_on_a_terminal():
    with terminal() as (master, slave), running("prompt", stdin=slave, stdout=slave) as child:
        assert read_within(master, 20, len(QUESTION)) == QUESTION
        os.write(master, b"Ada\n")
        expected = b"Hello, Ada.\n"
        assert read_within(master, 20, len(expected)) == expected and child.wait() == 0


def test_prompt_is_written_before_the_answer_through_pipes():
    with running("prompt", "Name: ", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert read_within(child.stdout.fileno(), 20, 6) == b"Name: "
        out, _ = child.communicate(b"Grace\n", timeout=20)
        assert out == b"Hello, Grace.\n" and child.returncode == 0


def test_prompt_is_late_without_the_tie():
    for make in "terminal", "pipe":
        with terminal() as (master, slave):
            ends = {"stdin": slave, "stdout": slave} if make == "terminal" else \
                {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            with running("prompt", "-u", **ends) as child:
                to = master if make == "terminal" else child.stdin.fileno()
                source = master if make == "terminal" else child.stdout.fileno()
                assert read_within(source, 0.5) == b"", make
                os.write(to, b"Ada\n")
                expected = QUESTION + b"Hello, Ada.\n"
                assert read_within(source, 20, len(expected)) == expected, make


def test_prompt_without_an_answer():
    assert succeeds("prompt", "? ") == b"? \nNobody.\n"
    assert succeeds("prompt", "? ", stdin=b"\n") == b"? \nNobody.\n"
    long = b"Ada \0 Lovelace " * 20_000
    assert succeeds("prompt", "? ", stdin=long + b"\n") == b"? Hello, " + long + b".\n"
    assert succeeds("prompt", "? ", stdin=b"Ada") == b"? Hello, Ada.\n"  # the last line, without its newline


def test_prompt_errors():
    fails_on_full_device("prompt", stdin=b"Ada\n")
    ends_at_closed_pipe("prompt", stdin=b"Ada\n")
    refuses("prompt", "-x")
    refuses("prompt", "a", "b")
    directory = os.open(".", os.O_RDONLY)
    fails("prompt", stdin=directory, naming=["standard input", "Is a directory"])
    os.close(directory)


def test_dots_are_written_one_by_one():
    with running("dots", 3, 0.3, stdout=subprocess.PIPE) as child:
        start = time.monotonic()
        for _ in range(3):
            assert read_within(child.stdout.fileno(), 20) == b"."
        assert time.monotonic() - start >= 0.55
        assert child.stdout.read() == b"\n" and child.wait() == 0


def test_dots_without_the_flush_are_written_all_at_once():
    for make in "pipe", "terminal":
        with terminal() as (master, slave):
            target = slave if make == "terminal" else subprocess.PIPE
            with running("dots", "-n", 3, 0.3, stdout=target) as child:
                source = master if make == "terminal" else child.stdout.fileno()
                assert read_within(source, 0.6) == b"", make
                assert read_within(source, 20, 4) == b"...\n", make


def test_dots_errors():
    fails_on_full_device("dots", 2, 0)
    fails_on_full_device("dots", "-n", 2, 0)
    ends_at_closed_pipe("dots", 2, 0)
    for arguments in ["x"], ["1", "x"], ["1", "-1"], ["1", "2", "3"], ["-x"]:
        refuses("dots", *arguments)
    assert run("dots", 0, 0).out == b"\n"
