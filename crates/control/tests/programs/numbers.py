# Prints numbered lines until somebody ends it; how many are complete stands in a shared file.
import mmap, struct, sys, time

with open(sys.argv[1], "r+b") as file:
    shared = mmap.mmap(file.fileno(), 8)
every = int(sys.argv[2])
number = 0
while True:
    print(number, "a line that ends here")
    number += 1
    shared[:8] = struct.pack("<q", number)
    if every and number % every == 0:
        time.sleep(0.0002)
    if every and number % (37 * every) == 0:
        sys.stdout.flush()
