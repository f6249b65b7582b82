# Prints lines in every way that makes a flush; how many are complete stands in a shared file. A signal that nobody
# minds says where it begins to matter.
import mmap, os, signal, struct, sys

with open(sys.argv[1], "r+b") as file:
    shared = mmap.mmap(file.fileno(), 8)
same, buffered, chunk = sys.argv[2] == "same", int(sys.argv[3]), int(sys.argv[4])
out = open(1, "w", buffering=buffered, closefd=False)
out._CHUNK_SIZE = chunk
number = 0


def lines(count, longer=0):
    global number
    for _ in range(count):
        print("a line" if same else number, "x" * longer, file=out)
        number += 1
        shared[:8] = struct.pack("<q", number)


lines(50)
os.kill(os.getpid(), signal.SIGWINCH)
lines(20)
out.flush()
lines(2)
lines(1, 3 * buffered)
lines(2)
out.flush()
out.flush()
os.kill(os.getpid(), signal.SIGWINCH)
