# As both_ways.c, through a binary file of Python.
import os
import signal
import sys
import time

file = open("file", "w+b")
for number in range(2000):
    file.write(b"line %d of the first part\n" % number)
file.flush()
how = sys.argv[1]
if how[0] != "n":
    file.seek(100)
    file.read(11)
    if how[0] == "z":
        file.read()
    elif how[0] in "bfe":
        file.seek({"b": -3, "f": 130, "e": 0}[how[0]], {"b": 1, "f": 0, "e": 2}[how[0]])
for number in range(5):
    file.write(b"NEW %d\n" % number)
    time.sleep(0.005)
if how[1:] == "2":
    file.seek(0)
    file.read(1)
    file.seek(0, 2)
    file.write(b"at the end\n")
    time.sleep(0.02)
if len(sys.argv) > 2:
    os.kill(os.getpid(), signal.SIGKILL)
file.close()
