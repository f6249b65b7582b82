"""Four threads print to a file until the program is killed."""
import os
import signal
import threading
import time


def work(number):
    step = 0
    while True:
        print(f"worker {number}: step {step}")
        step += 1
        time.sleep(0.002)


for number in range(4):
    threading.Thread(target=work, args=[number], daemon=True).start()
time.sleep(0.3)
os.kill(os.getpid(), signal.SIGKILL)
