import time

n = 0
while True:
    n += 1
    print("measured", n, flush=True)
    time.sleep(0.02)
