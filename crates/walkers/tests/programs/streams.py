"""Leaves known bytes in Python's streams, writes a byte to stderr, and waits."""
import os
import sys
import time

os.chdir(sys.argv[1])
open("input", "w").write("first line\nsecond line\nthird")


class Holder:
    """Its streams are found though no module names them."""

    def __init__(self):
        self.text = open("text", "w")
        self.line = open("line", "w", buffering=1)
        self.binary = open("binary", "wb")
        self.random = open("random", "w+b")
        self.raw = open("raw", "wb", buffering=0)
        self.reader = open("input", "rb")
        self.lines = open("input")


def fill(streams):
    """The same bytes as the test expects."""
    streams.text.write("part one, ")
    streams.text.write("gr\u00fc\u00dfe")
    streams.line.write("a whole line\nthe rest")
    streams.binary.write(bytes(97 + i % 26 for i in range(300)))
    streams.random.write(b"here and there")
    streams.raw.write(b"at once")
    streams.reader.readline()
    streams.lines.readline()
    sys.stdout.write("in stdout")


kept = Holder()
fill(kept)
os.write(2, b".")
time.sleep(1000)
