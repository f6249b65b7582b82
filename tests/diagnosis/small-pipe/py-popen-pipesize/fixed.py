import subprocess
import time

child = subprocess.Popen(["python3", "sender"], stdin=subprocess.PIPE, bufsize=0, pipesize=1 << 20)
for number in range(30):
    time.sleep(0.012)  # in place of the query that yields the batch
    batch = b"%07d\n" % number * 131072
    while batch:
        batch = batch[child.stdin.write(batch):]
child.stdin.close()
child.wait()
