import os

child = os.fork()
if child == 0:
    print("worker result:", sum(range(1000)))
    os._exit(0)
os.waitpid(child, 0)
