"""A logger that joins lines to a block of 4 KiB before it writes them with os.write()."""
import os
import sys

lines, size = [], 0
while line := sys.stdin.readline():
    if size + len(line) > 4096:
        os.write(1, "".join(lines).encode())
        lines, size = [], 0
    lines.append(line)
    size += len(line)
os.write(1, "".join(lines).encode())
