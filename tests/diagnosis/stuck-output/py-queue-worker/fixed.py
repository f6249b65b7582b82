import queue
import threading
import time

jobs = queue.Queue()


def work():
    while (job := jobs.get()) is not None:
        print("result", job * job, flush=True)


worker = threading.Thread(target=work)
worker.start()
for job in range(5):
    jobs.put(job)
time.sleep(1.6)
jobs.put(None)
worker.join()
