import os
import sys

log = open("pool.log", "a")
log.write("pool of 3 workers starts\n")
log.flush()
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        log.write(f"worker {number} ready\n")
        log.close()
        sys.exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
log.write("pool ended\n")
log.close()
