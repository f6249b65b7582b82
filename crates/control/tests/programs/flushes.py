# Prints lines by each call that can flush. The shared file argv[1] holds the number of complete lines. SIGWINCH,
# which is ignored, marks the beginning and end of the part that the test steps through.
import mmap, os, signal, struct, sys

with open(sys.argv[1], "r+b") as file:
    shared = mmap.mmap(file.fileno(), 8)
same, buffered, chunk = sys.argv[2] == "same", int(sys.argv[3]), int(sys.argv[4])
before, between = int(sys.argv[5]), int(sys.argv[6])
out = open(1, "w", buffering=buffered, closefd=False)
out._CHUNK_SIZE = chunk
number = 0


def lines(count, longer=0):
    global number
    for _ in range(count):
        out.write("a line\n" if same else f"{number} {'x' * longer}\n")
        number += 1
        shared[:8] = number.to_bytes(8, "little")


def mark():
    os.kill(os.getpid(), signal.SIGWINCH)


lines(before)
mark()
lines(between)
if chunk < 100:
    out.flush()
    lines(1)
    lines(1, 3 * buffered)
    lines(1)
    out.flush()
mark()
