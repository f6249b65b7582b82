"""Shared by the tests of the examples: running and tracing programs, and a directory for each test."""
import contextlib
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import tty

LIMIT_S = 60  # of a program's run time
examples = None
directories = None


class Skip(Exception):
    """The test cannot run here. The argument is the reason."""


def start(build):
    global examples, directories
    examples = build / "examples"
    directories = build / "test-directories"  # not /tmp, which may be a tmpfs without O_DIRECT
    directories.mkdir(parents=True, exist_ok=True)
    os.environ["LC_ALL"] = "C"
    os.environ.pop("PYTHONUNBUFFERED", None)


@contextlib.contextmanager
def private_directory():
    path = tempfile.mkdtemp(dir=directories)
    previous = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(previous)
        shutil.rmtree(path)


RUN = os.environ.get("RUN", "").split()  # command that runs programs of another architecture


def command(name, *arguments):
    return [*RUN, str(examples / name), *map(str, arguments)]


class Result:
    def __init__(self, done):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr.decode(errors="replace")

    def __repr__(self):
        out = self.out or b""
        return f"status {self.status}, {len(out)} bytes {out[:200]!r}, {self.err!r}"


def run_command(words, stdin=b"", stdout=subprocess.PIPE, **more):
    source = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
    more.update(source, stdout=stdout, stderr=subprocess.PIPE, timeout=LIMIT_S)
    return Result(subprocess.run(words, **more))


def run(name, *arguments, **more):
    return run_command(command(name, *arguments), **more)


def succeeds(name, *arguments, **more):
    """Runs the program, expects status 0 and no message, and returns its standard output."""
    result = run(name, *arguments, **more)
    assert result.status == 0 and result.err == "", (name, arguments, result)
    return result.out


def refuses(name, *arguments):
    """Expects that the program refuses the arguments: usage message, no output, status 2."""
    result = run(name, *arguments)
    assert result.status == 2 and f"usage: {name} " in result.err and result.out == b"", (arguments, result)


def fails(name, *arguments, naming, **more):
    """Expects status 1 and a message with all parts of `naming`."""
    result = run(name, *arguments, **more)
    assert result.status == 1 and result.err.startswith(f"{name}: "), (arguments, result)
    assert all(part in result.err for part in naming), (arguments, naming, result)
    return result


def fails_on_full_device(name, *arguments, **more):
    with open("/dev/full", "wb") as full:
        fails(name, *arguments, stdout=full, naming=["standard output", "No space left on device"], **more)


def ends_at_closed_pipe(name, *arguments, **more):
    """Expects that the program ends when its reader has closed the pipe: by SIGPIPE, or with a message if ignored."""
    for ignored in False, True:
        reader, writer = os.pipe()
        os.close(reader)
        action = signal.SIG_IGN if ignored else signal.SIG_DFL
        result = run(name, *arguments, stdout=writer, restore_signals=False,
                     preexec_fn=lambda: signal.signal(signal.SIGPIPE, action), **more)
        os.close(writer)
        if ignored:
            assert result.status == 1 and "Broken pipe" in result.err, result
        else:
            assert result.status == -signal.SIGPIPE, result


@contextlib.contextmanager
def running(name, *arguments, **more):
    """Runs the program as a child, which is killed at the end of the block."""
    child = subprocess.Popen(command(name, *arguments), **more)
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        for end in child.stdin, child.stdout, child.stderr:
            if end:
                with contextlib.suppress(OSError):
                    end.close()


@contextlib.contextmanager
def terminal():
    """Yields the two descriptors of a raw pseudo-terminal: for the test, for the program."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    try:
        yield master, slave
    finally:
        for fd in master, slave:
            with contextlib.suppress(OSError):
                os.close(fd)


def read_within(fd, seconds, enough=1):
    """Returns the bytes that arrive until there are `enough`, or end of file, or the time is over."""
    got = b""
    end = time.monotonic() + seconds
    while len(got) < enough and select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
        try:
            part = os.read(fd, 65536)
        except OSError:  # the program has closed the terminal
            break
        if not part:
            break
        got += part
    return got


def wait_until(condition, description, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {description}"
        time.sleep(0.01)


def content(path):
    try:
        return pathlib.Path(path).read_bytes()
    except FileNotFoundError:
        return b""


def traced(name, *arguments, calls, raw="none", **more):
    """Returns the program's system calls named by `calls`, as strace(1) prints them; arguments of `raw` as numbers."""
    if RUN or not shutil.which("strace"):
        raise Skip("strace is not installed, or would trace RUN")
    words = ["strace", "-f", "-qq", "-o", "trace", "-s", "16", "-e", "signal=none", "-e", f"trace={calls}",
             "-e", f"raw={raw}"]
    environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")  # the leak sanitizer uses ptrace(2), too
    result = run_command(words + command(name, *arguments), env=environment, **more)
    assert result.status == 0, result
    return [re.sub(r"^\d+ +", "", line) for line in content("trace").decode().splitlines()]
