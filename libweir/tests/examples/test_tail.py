"""tail: the same output as the system's tail, for ordinary and unusual files."""
import contextlib
import os
import pathlib
import random
import subprocess

from harness import (content, ends_at_closed_pipe, fails, fails_on_full_device, read_within, refuses, run,
                     run_command, running, succeeds, traced, wait_until)

FIRST_BLOCK, BLOCK, PIPE_BLOCK = 1 << 14, 1 << 18, 1 << 16  # as in the program


def unusual_files():
    some = random.Random(11)
    yield "empty", b""
    yield "newline", b"\n"
    yield "newlines", b"\n" * 70_000
    yield "no-final-newline", b"a\nb\nc"
    yield "one-line-unfinished", b"a"
    yield "nul-bytes", b"\0\0\na\0b\n\0" * 1000
    yield "one-huge-line", b"x" * 700_000
    yield "one-huge-line-ended", b"x" * 700_000 + b"\n"
    yield "huge-line-after-small-ones", b"a\nb\n" + b"x" * 600_000 + b"\ny"
    yield "many-lines", b"".join(b"%d\n" % i for i in range(200_000))
    yield "random-bytes", some.randbytes(1_000_000)
    yield "long-lines", b"".join(b"l" * some.randrange(20_000) + b"\n" for _ in range(100))
    for block in FIRST_BLOCK, PIPE_BLOCK, BLOCK:
        for shift in -1, 0, 1:
            line = b"." * 63 + b"\n"
            whole = line * (3 * block // 64)
            yield f"edge-{block}{shift:+}", whole[:block * 2 + shift]
            yield f"edge-{block}{shift:+}-in-front", b"\n" * (block + shift) + b"x" * block


COUNTS = [0, 1, 2, 3, 10, 255, 1023, 1024, 5000, 16_384, 262_144, 10_000_000]


def system_tail(*arguments, **more):
    """Returns standard output and status of the system's tail. Its messages may differ."""
    result = run_command(["tail", *map(str, arguments)], **more)
    return result.out, result.status


def compare(*arguments, **more):
    result = run("tail", *arguments, **more)
    assert (result.out, result.status) == system_tail(*arguments, **more), (arguments, result)


def write(name, data):
    with open(name, "wb") as file:
        file.write(data)


def test_last_lines_of_files():
    for name, data in unusual_files():
        write(name, data)
        compare(name)
        for count in COUNTS:
            compare("-n", count, name)


def test_last_lines_of_pipes():
    for name, data in unusual_files():
        compare(stdin=data)
        for count in COUNTS:
            compare("-n", count, stdin=data)


def test_last_bytes():
    for name, data in unusual_files():
        write(name, data)
        for count in 0, 1, 10, 65_535, 65_536, 65_537, 10_000_000:
            compare("-c", count, name)
            compare("-c", count, stdin=data)


def test_from_the_start():
    for name, data in unusual_files():
        write(name, data)
        for count in "+0", "+1", "+2", "+3", "+1000", "+70000", "+10000000":
            for unit in "-n", "-c":
                compare(unit, count, name)
                compare(unit, count, stdin=data)


def test_random_files():
    some = random.Random(23)
    for _ in range(150):
        density = some.choice([2, 10, 80, 1000, 30_000])
        data = bytes(some.randrange(density) and 120 or 10 for _ in range(some.randrange(1, 60_000)))
        data *= some.choice([1, 1, 10])
        write("f", data)
        lines = data.count(b"\n")
        count = some.choice([some.randrange(lines + 3), max(0, lines + some.randrange(-2, 3))])
        compare("-n", count, "f")
        compare("-n", count, stdin=data)
        compare("-n", f"+{count}", "f")


def test_pipe_in_pieces():
    data = b"".join(b"%d\n" % i for i in range(30_000)) + b"unfinished"
    some = random.Random(2)
    for count in 0, 1, 7, 20_000:
        with running("tail", "-n", count, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            at = 0
            while at < len(data) and count:
                size = some.choice([1, 100, 4096, 65_536])
                child.stdin.write(data[at:at + size])
                child.stdin.flush()
                at += size
            out, _ = child.communicate(timeout=30)
            expected = b"".join(data.splitlines(keepends=True)[-count:]) if count else b""
            assert out == expected and child.returncode == 0, count


def test_pipe_that_ends_at_the_end_of_a_block():
    """The first requested line begins near the end of a block that the program might release too early."""
    for blocks in 2, 3, 5:
        line = b"l" * 999 + b"\n"
        data = (line * (blocks * PIPE_BLOCK // len(line) + 1))[-blocks * PIPE_BLOCK:]
        for part in range(1, blocks):
            lines = data[part * PIPE_BLOCK:].count(b"\n")
            for count in lines - 1, lines, lines + 1:
                compare("-n", count, stdin=data)


def test_a_long_pipe_needs_little_memory():
    with running("tail", "-n", 1000, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as child:
        block = b"a line of the log\n" * 60_000
        for _ in range(128):
            child.stdin.write(block)
        child.stdin.close()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0 and usage.ru_maxrss < 80_000, usage  # KiB; the input has 135,000


def test_several_files_with_their_names():
    write("a", b"1\n2\n3\n")
    write("b", b"no newline")
    write("empty", b"")
    for arguments in ["a", "b"], ["a", "b", "empty", "a"], ["-q", "a", "b"], ["-v", "a"], \
            ["a", "no-such", "b"], ["-v", "no-such"], ["-n", 0, "a", "b"], ["-v", "-"], ["a", "-"], \
            [".", "a"]:
        compare(*arguments, stdin=b"given\n")


def test_a_file_on_standard_input_begins_at_its_position():
    data = b"".join(b"%d\n" % i for i in range(10_000))
    write("f", data)
    for offset in 0, 5, 10_000, len(data) - 3, len(data), len(data) + 10:
        for arguments in ["-n", 3], ["-n", 100_000], ["-c", 5], ["-n", "+2"], ["-c", "+3"]:
            outs = []
            for program in succeeds, system_tail:
                with open("f", "rb", buffering=0) as file:
                    file.seek(offset)
                    out = program("tail", *arguments, stdin=file) if program is succeeds else \
                        program(*arguments, stdin=file)[0]
                outs.append(out)
            assert outs[0] == outs[1], (offset, arguments, outs)


def test_files_of_unknown_size():
    for name in "/proc/self/limits", "/proc/filesystems", "/sys/kernel/mm/transparent_hugepage/enabled", \
            "/dev/null":
        if os.path.exists(name):
            compare("-n", 1, name)
            compare("-n", 3, name)


def test_reads_only_the_end_of_a_file():
    with open("f", "wb") as file:
        file.truncate(1 << 30)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + b"a line of the log\n" * 1000)
    reads = traced("tail", "f", calls="pread64,read,preadv,preadv2")
    got = sum(int(line.rsplit("= ", 1)[1]) for line in reads if "ELF" not in line)
    assert got < 200_000, reads
    assert succeeds("tail", "-n", 3, "f") == b"a line of the log\n" * 3


def following(*arguments, **more):
    return running("tail", "-f", *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def watches(child):
    """Returns true if the program has an inotify watch: it waits for changes."""
    for info in pathlib.Path(f"/proc/{child.pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed after iterdir listed it
            if "inotify wd" in info.read_text():
                return True
    return False


def expect(child, expected):
    got = read_within(child.stdout.fileno(), 20, len(expected))
    assert got == expected, (got, expected)


def append(name, data):
    with open(name, "ab") as file:
        file.write(data)


def test_follows_added_lines():
    write("f", b"1\n2\n3\n")
    with following("-n", 2, "f") as child:
        expect(child, b"2\n3\n")
        for part in b"4\n", b"half", b" line\n", b"z" * 300_000 + b"\n":
            append("f", part)
            expect(child, part)
        os.rename("f", "g")  # -f follows the file, not its name
        write("f", b"another\n")
        append("g", b"5\n")
        expect(child, b"5\n")
        assert child.poll() is None


def test_follows_after_every_kind_of_start():
    write("f", b"1\n2\n3\n")
    for arguments, first in (["-n", 0], b""), (["-n", "+2"], b"2\n3\n"), (["-c", 1], b"\n"), \
            (["-c", "+1"], b"1\n2\n3\n"):
        with following(*arguments, "f") as child:
            expect(child, first)
            wait_until(lambda: watches(child), "the program waits for changes")
            append("f", b"4\n")
            expect(child, b"4\n")
        write("f", b"1\n2\n3\n")


def test_notices_a_truncated_file():
    write("f", b"1\n2\n3\n")
    with following("f") as child:
        expect(child, b"1\n2\n3\n")
        os.truncate("f", 0)
        assert child.stderr.readline() == b"tail: f: file truncated\n"
        append("f", b"new\n")
        expect(child, b"new\n")


def test_follows_several_files():
    write("a", b"1\n")
    write("b", b"2\n")
    with following("a", "b") as child:
        expect(child, b"==> a <==\n1\n\n==> b <==\n2\n")
        append("b", b"3\n")
        expect(child, b"3\n")
        append("a", b"4\n")
        expect(child, b"\n==> a <==\n4\n")
        append("b", b"5\n")
        expect(child, b"\n==> b <==\n5\n")


def test_stops_following_when_the_reader_closes_the_pipe():
    write("f", b"1\n")
    with following("f") as child:
        expect(child, b"1\n")
        child.stdout.close()
        assert child.wait(timeout=20) != 0  # without a new line in the file


def test_following_a_pipe_ends_with_it():
    assert succeeds("tail", "-f", "-n", 1, stdin=b"1\n2\n") == b"2\n"
    assert succeeds("tail", "-f", "-n", 0, stdin=b"1\n2") == b""


def test_errors():
    write("f", b"1\n" * 100_000)
    fails("tail", "no-such", naming=["no-such: No such file"])
    fails("tail", ".", naming=[".: Is a directory"])
    for arguments in ["f"], ["-n", 90_000, "f"], ["-n", "+1", "f"]:
        fails_on_full_device("tail", *arguments)
        ends_at_closed_pipe("tail", *arguments)
    fails_on_full_device("tail", stdin=b"1\n")
    ends_at_closed_pipe("tail", "-n", 100_000, stdin=content("f"))
    result = run("tail", "no-such", "f")
    assert result.status == 1 and result.out.endswith(b"1\n")
    for arguments in ["-n"], ["-n", "x"], ["-n", "--1"], ["-x"], ["-n", "1x"], ["-c", ""]:
        refuses("tail", *arguments)
