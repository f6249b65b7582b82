# As forks_late.cc.
import os

large = [str(number) for number in range(400_000)]


def fork_with(file, line):
    file.write(line + "\n")
    if os.fork() == 0:
        file.write("child of " + line + "\n")
        file.flush()
        os._exit(0)
    os.wait()


first = open("/dev/stdout", "a")
fork_with(first, "1")
second = open("/dev/stdout", "a")
fork_with(second, "2")
