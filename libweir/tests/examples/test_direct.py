"""direct_read: the reads that the device refuses, and their messages."""
import os
import random
import re

from harness import Skip, fails, fails_on_full_device, refuses, run, succeeds, traced


def make_file(name="x"):
    with open(name, "wb") as file:
        file.write(random.Random(4).randbytes(65536))
        file.flush()
        os.fsync(file.fileno())


def needs(name="x"):
    """Returns the required multiples of (length and offset, address) that the program reports for a valid read."""
    result = run("direct_read", name, 65536)
    found = re.search(r"multiples of (\d+), memory at a multiple of (\d+)", (result.out or b"").decode())
    if not found:
        raise Skip(f"no direct reads here, or their alignment is unknown: {result}")
    return int(found[1]), int(found[2])


def test_multiples_of_512():
    """Compares exact results on a device that needs multiples of 512."""
    make_file()
    if needs() != (512, 512):
        raise Skip(f"the device needs multiples of {needs()}")
    for arguments, got in ([512], 512), ([4096, 8192, 512], 4096), ([4096, 0, 512], 4096), \
            ([65536, 4096], 61440), ([512, 65536], 0):
        out = succeeds("direct_read", "x", *arguments)
        assert out.splitlines()[0] == b"Read %d bytes" % got, (arguments, out)
    for arguments, wrong in ([256], "length 256"), ([512, 1], "offset 1"), ([4097], "length 4097"), \
            ([4096, 512, 256], "address alignment 256"), ([4096, 513], "offset 513"), \
            ([4096, 0, 1], "address alignment 1"):
        result = fails("direct_read", "x", *arguments, naming=["x: EINVAL: Invalid argument"])
        reported = re.findall(r"  (\w.*) is not a multiple", result.err)
        assert reported == [wrong], (arguments, result)


def test_alignment_of_this_device():
    make_file()
    block, memory = needs()
    succeeds("direct_read", "x", block, block, memory)
    if block > 1:
        fails("direct_read", "x", block // 2, naming=["EINVAL", f"the nearest is {block}"])
        fails("direct_read", "x", block, block // 2 + 1, naming=["EINVAL", f"the nearest is {block}"])
    if memory > 1:  # 32 KiB, because the device may accept a short read at a misaligned address
        fails("direct_read", "x", 32768, 0, memory // 2, naming=["EINVAL", f"the nearest is {memory}"])


def test_nearest_valid_values():
    make_file()
    if needs()[0] != 512:
        raise Skip(f"the device needs multiples of {needs()[0]}")
    for length, nearest in (1, 512), (255, 512), (700, 512), (768, 512), (769, 1024), (1023, 1024):
        fails("direct_read", "x", length, naming=[f"length {length} is", f"the nearest is {nearest}\n"])
    for offset, nearest in (1, 0), (256, 0), (257, 512), (1100, 1024):
        fails("direct_read", "x", 512, offset, naming=[f"offset {offset} is", f"the nearest is {nearest}\n"])
    fails("direct_read", "x", 100, 100, 64, naming=["length 100", "offset 100", "address alignment 64"])


def test_memory_alignment_is_exact():
    """Reads beyond the end of the file, because strace prints the address only if the kernel stored no bytes."""
    make_file()
    for alignment in 512, 4096, 8192, 65536:
        calls = traced("direct_read", "x", 4096, 1 << 20, alignment, calls="pread64", raw="pread64")
        address = int(re.search(r"pread64\(\w+, (0x[0-9a-f]+)", calls[-1])[1], 16)
        assert address % alignment == 0 and address % (2 * alignment) != 0, (alignment, hex(address))


def test_opens_with_o_direct():
    make_file()
    opened = [line for line in traced("direct_read", "x", 65536, calls="?open,openat") if '"x"' in line]
    assert len(opened) == 1 and "O_DIRECT" in opened[0], opened


def test_tmpfs_reports_no_alignment():
    """tmpfs allows any direct read or none; the program reports which."""
    name = f"/dev/shm/direct-read-test-{os.getpid()}"
    if not os.path.isdir("/dev/shm"):
        raise Skip("no /dev/shm")
    make_file(name)
    try:
        result = run("direct_read", name, 256, 1, 2)
    finally:
        os.unlink(name)
    if result.status == 0:
        assert result.out.startswith(b"Read 256 bytes\n"), result
        assert b"does not report what direct reads require" in result.out, result
    else:
        assert result.status == 1 and "EINVAL" in result.err, result


def test_errors():
    make_file()
    fails("direct_read", "no-such", 512, naming=["no-such", "No such file"])
    fails_on_full_device("direct_read", "x", 65536)
    for arguments in [], ["x"], ["x", "a"], ["x", "512", "-1"], ["x", "512", "0", "3"], \
            ["x", "512", "0", "0"], ["x", "1", "2", "4", "5"]:
        refuses("direct_read", *arguments)
