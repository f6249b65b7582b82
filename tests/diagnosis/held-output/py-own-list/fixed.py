"""A logger that writes each line at once with os.write()."""
import os
import sys

while line := sys.stdin.readline():
    os.write(1, line.encode())
