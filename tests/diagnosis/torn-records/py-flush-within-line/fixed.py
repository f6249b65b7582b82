import multiprocessing
import sys
import time

sys.stdout.reconfigure(line_buffering=True)
ready = multiprocessing.Barrier(3)


def work(number):
    ready.wait()
    for item in range(20):
        print("worker", number, "item", item, end=" ")
        time.sleep(0.01)
        print("ok")


workers = [multiprocessing.Process(target=work, args=(number,)) for number in range(3)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
