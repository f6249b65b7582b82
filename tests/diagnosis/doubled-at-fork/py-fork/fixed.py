import os
import sys

print("file,lines", flush=True)
child = os.fork()
if child == 0:
    print("first,100")
    sys.exit(0)
os.waitpid(child, 0)
print("second,200")
