import time

log = open("poller.log", "a")
for step in range(8):
    log.write(f"round {step}: queue has {step * 7 % 5} jobs\n")
    time.sleep(0.2)
log.close()
