import os
import time

for name in ("left", "right"):
    if os.fork() == 0:
        with open("result.csv", "a", buffering=1) as result:
            for i in range(600):
                result.write(f"{name},{i},{i * i}\n")
                if i % 20 == 0:
                    time.sleep(0.01)
        os._exit(0)
os.wait()
os.wait()
