# Prints numbered lines until it is killed. The shared file argv[1] holds the number of complete lines.
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
