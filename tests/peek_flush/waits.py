"""Leaves bytes in a text and a binary stream, writes a byte to stderr, waits for the end of stdin, and prints the rest."""
import os
import sys

binary = open("binary", "wb")
binary.write(b"in binary")
print("one")
print("gr\u00fc\u00dfe", end="")
os.write(2, b".")
os.read(0, 1)
if binary.tell() != 9 or os.lseek(binary.fileno(), 0, os.SEEK_CUR) != 9:
    os._exit(9)
binary.write(b" end\n")
print(" end")
