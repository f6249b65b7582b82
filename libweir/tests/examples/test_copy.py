"""copy: the same bytes and permissions, and the messages for an incomplete copy."""
import os
import random
import resource
import signal

from harness import content, fails, refuses, succeeds, traced


def make(name, data, mode=0o644):
    with open(name, "wb") as file:
        file.write(data)
    os.chmod(name, mode)


def mode_of(name):
    return os.stat(name).st_mode & 0o7777


def test_copies_any_length():
    some = random.Random(1)
    for length in 0, 1, 4095, 4096, 65536, 131071, 131072, 131073, 3_000_001:
        data = some.randbytes(length)
        make("from", data)
        succeeds("copy", "from", "to")
        assert content("to") == data, length


def test_old_content_is_replaced():
    make("from", b"short")
    make("to", b"long " * 100_000)
    succeeds("copy", "from", "to")
    assert content("to") == b"short"


def test_permissions_do_not_depend_on_the_umask():
    previous = os.umask(0o077)
    try:
        for mode in 0o644, 0o755, 0o600, 0o444, 0o777, 0o4755:
            make("from", b"x", mode)
            succeeds("copy", "from", f"to{mode:o}")
            assert mode_of(f"to{mode:o}") == mode & 0o777, oct(mode)
            make("there", b"", 0o640)
            succeeds("copy", "from", "there")
            assert mode_of("there") == mode & 0o777, oct(mode)
    finally:
        os.umask(previous)


def test_target_is_private_while_it_is_written():
    make("from", b"x" * 10, 0o666)
    opened = [line for line in traced("copy", "from", "to", calls="?open,openat") if '"to"' in line]
    assert len(opened) == 1 and "0600" in opened[0], opened


def test_special_files():
    make("from", b"x" * 100_000)
    before = os.stat("/dev/null").st_mode
    succeeds("copy", "from", "/dev/null")
    assert os.stat("/dev/null").st_mode == before
    assert succeeds("copy", "from", "/dev/stdout") == b"x" * 100_000
    succeeds("copy", "/proc/self/status", "to")
    assert content("to").startswith(b"Name:")
    os.symlink("to", "link")
    succeeds("copy", "from", "link")
    assert os.path.islink("link") and content("to") == b"x" * 100_000


def test_source_and_target_are_the_same_file():
    make("from", b"precious")
    os.link("from", "hard")
    os.symlink("from", "soft")
    for name in "from", "hard", "soft":
        fails("copy", "from", name, naming=["from", name, "same file"])
        assert content("from") == b"precious"


def test_missing_source_keeps_the_target():
    make("to", b"precious")
    fails("copy", "no-such", "to", naming=["no-such", "No such file"])
    fails("copy", ".", "to", naming=[".: Is a directory"])
    assert content("to") == b"precious"


def test_message_for_a_partial_target():
    """A file size limit replaces a full disk."""
    def small_files_only():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    make("from", random.Random(2).randbytes(1_000_000))
    fails("copy", "from", "to", preexec_fn=small_files_only, restore_signals=False,
          naming=["to: File too large", "to is not complete: it has the first 200000 bytes"])
    assert content("to") == content("from")[:200_000]


def test_errors():
    make("from", b"x")
    fails("copy", "from", "/dev/full", naming=["/dev/full", "No space left on device"])
    fails("copy", "from", "no/such", naming=["no/such", "No such file"])
    fails("copy", "from", ".", naming=[".: Is a directory"])
    for arguments in [], ["from"], ["from", "to", "more"]:
        refuses("copy", *arguments)
