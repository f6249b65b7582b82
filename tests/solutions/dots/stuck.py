#!/usr/bin/env python3
# fails one-by-one, killed, calls: print without flush=True.
import sys
import time

try:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 1
except ValueError:
    sys.exit("usage: dots [COUNT [SECONDS]]")
for _ in range(count):
    print(".", end="")
    time.sleep(seconds)
print()
