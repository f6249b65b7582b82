# Writes numbered lines by several threads to standard output, to a file that all share as bytes, and to a file for each thread.
# The shared file argv[1] holds the number of complete lines of each thread in each output. With argv[2] "end" each thread ends
# after argv[3] lines, otherwise it goes on until the process is killed.
import contextlib, mmap, random, struct, sys, threading, time

THREADS = 4
with open(sys.argv[1], "r+b") as file:
    counter = mmap.mmap(file.fileno(), 8 * 3 * THREADS)
endless, lines = sys.argv[2] != "end", int(sys.argv[3])
shared = open("shared", "wb")
barrier = threading.Barrier(THREADS)
# Before 3.13, TextIOWrapper.write() loses text of another thread while it writes to a busy buffer (CPython's issue 119506).
text_lock = threading.Lock() if sys.version_info < (3, 13) else contextlib.nullcontext()


def count(thread, output, number):
    counter[8 * (3 * thread + output) : 8 * (3 * thread + output + 1)] = struct.pack("<q", number)


def write(thread):
    draws = random.Random(thread)
    own = open(f"own{thread}", "w")
    barrier.wait()
    number = 0
    while endless or number < lines:
        line = f"{thread} {number} a line that ends here\n"
        number += 1
        with text_lock:
            sys.stdout.write(line)
            count(thread, 0, number)
        shared.write(line.encode())
        count(thread, 1, number)
        own.write(line)
        count(thread, 2, number)
        action = draws.randrange(200)
        if action < 10:
            time.sleep(draws.random() * 0.002)
        elif action < 13:
            with text_lock:
                sys.stdout.flush()
        elif action < 15:
            shared.flush()
        elif action < 17:
            own.flush()
        elif action == 20:
            until = time.perf_counter() + 0.002
            while time.perf_counter() < until:
                pass
    own.close()


threads = [threading.Thread(target=write, args=(number,)) for number in range(THREADS)]
for one in threads:
    one.start()
for one in threads:
    one.join()
