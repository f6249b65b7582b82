import time

n = 0
while True:
    n += 1
    print("measured", n)
    time.sleep(0.02)
