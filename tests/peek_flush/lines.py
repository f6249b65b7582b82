"""Prints as many numbered lines as the argument says, and sleeps now and then."""
import sys
import time

for i in range(int(sys.argv[1])):
    print("line", i)
    if i % 40 == 0:
        time.sleep(0.0005)
