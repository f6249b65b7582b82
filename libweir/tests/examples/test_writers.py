"""unbuffered_writer, buffered_writer, write_bytes: their bytes and the number of their system calls."""
import re

from harness import content, ends_at_closed_pipe, fails, fails_on_full_device, refuses, succeeds, traced

COUNT = 100_000


def sizes_written(name, *arguments, to="f"):
    """Returns the sizes of the writes to the file `to`, and the line of its open(2)."""
    lines = traced(name, *arguments, calls="?open,openat,write,writev,pwrite64,close")
    opened = [line for line in lines if f'"{to}"' in line]
    assert len(opened) == 1, lines[:20]
    fd = opened[0].rsplit("= ", 1)[1]
    writes = [line for line in lines if re.match(rf"p?writev?(64)?\({fd},", line)]
    return [int(line.rsplit("= ", 1)[1]) for line in writes], opened[0]


def test_unbuffered_makes_one_call_per_byte():
    sizes, _ = sizes_written("unbuffered_writer", "f")
    assert sizes == [1] * COUNT and content("f") == b"x" * COUNT


def test_buffered_makes_a_few_dozen_calls():
    sizes, _ = sizes_written("buffered_writer", "f")
    assert sum(sizes) == COUNT and len(sizes) < 36 and content("f") == b"x" * COUNT


def test_both_write_the_same_bytes():
    for name in "unbuffered_writer", "buffered_writer":
        assert succeeds(name) == b"x" * COUNT
        assert succeeds(name, "-", 7) == b"x" * 7
        assert succeeds(name, "f", 0) == b"" and content("f") == b""
        succeeds(name, "f", 300_000)
        assert content("f") == b"x" * 300_000
        succeeds(name, "f", "1K")  # truncates the old content
        assert content("f") == b"x" * 1024


def test_writers_errors():
    for name in "unbuffered_writer", "buffered_writer":
        fails_on_full_device(name)
        fails_on_full_device(name, "-", 10)
        fails(name, "/dev/full", naming=["/dev/full", "No space left on device"])
        fails(name, "/dev/full", 10, naming=["/dev/full", "No space left on device"])
        fails(name, "no/such", naming=["no/such", "No such file or directory"])
        ends_at_closed_pipe(name)
        for arguments in ["f", "x"], ["f", "-1"], ["f", "1x"], ["f", "1", "2"], ["f", "99999999999999999999"]:
            refuses(name, *arguments)


def test_write_bytes_makes_calls_of_the_given_size():
    for total, size in (100_000, 1000), (1001, 100), (10, 4096), (0, 5), (300_000, 300_000):
        sizes, opened = sizes_written("write_bytes", "f", total, size)
        expected = [size] * (total // size) + [total % size] * (total % size > 0)
        assert sizes == expected, (total, size, sizes[:5])
        assert content("f") == b"x" * total
        assert "O_SYNC" not in opened and "O_DSYNC" not in opened


def test_write_bytes_sync_is_o_sync():
    sizes, opened = sizes_written("write_bytes", "f", 2000, 1000, "sync")
    assert sizes == [1000, 1000] and re.search(r"\bO_SYNC\b", opened)


def test_write_bytes_errors():
    fails("write_bytes", "/dev/full", 10, 5, naming=["/dev/full", "No space left on device"])
    fails("write_bytes", ".", 10, 5, naming=[".: ", "Is a directory"])
    for arguments in ["f"], ["f", "1"], ["f", "1", "0"], ["f", "1", "1", "async"], ["f", "x", "1"], \
            ["f", "1", "-1"]:
        refuses("write_bytes", *arguments)
