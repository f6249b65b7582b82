import multiprocessing
import time

ready = multiprocessing.Barrier(3)


def work(number):
    ready.wait()
    for item in range(20):
        print("worker", number, "item", item, end=" ", flush=True)
        time.sleep(0.01)
        print("ok", flush=True)


workers = [multiprocessing.Process(target=work, args=(number,)) for number in range(3)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
