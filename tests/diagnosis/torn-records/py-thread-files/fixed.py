import time
from concurrent.futures import ThreadPoolExecutor


def fetch(site):
    with open("result.csv", "a", buffering=1) as result:
        for i in range(300):
            result.write(f"{site},{i},{i * i}\n")
            if i % 20 == 0:
                time.sleep(0.01)


with ThreadPoolExecutor(3) as pool:
    list(pool.map(fetch, ["left", "middle", "right"]))
