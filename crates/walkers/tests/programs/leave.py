"""Leaves bytes in Python's streams, writes a byte to stderr; at a signal adds a tail to each and exits."""
import os
import signal
import sys

os.chdir(sys.argv[1])
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
full = open("full", "wb")
full.write(bytes(97 + i % 26 for i in range(3000)))
append = open("append", "a")
append.write("appended")
text = open("text", "w", encoding="utf-8")
text.write("part one, ")
text.flush()
for part in ("part two, ", "gr\u00fc\u00dfe", ", part three"):
    text.write(part)
mixed = open("mixed", "w")
mixed.buffer.write(b"in the buffer, ")
mixed.write("in the text")
both = open("both", "w+b")
both.write(b"here and there")
print("in stdout", end="")
os.write(2, b".")
signal.sigwait([signal.SIGUSR1])
for stream in (full, both):
    stream.write(b" tail\n")
for stream in (append, text, mixed, sys.stdout):
    stream.write(" tail\n")
    stream.flush()
