import time

for temperature in (21.5, 21.7, 21.6, 21.9):
    print("temperature", temperature, flush=True)
    time.sleep(0.4)
