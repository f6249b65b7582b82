import time

with open("app.log") as log:
    while True:
        line = log.readline()
        if not line:
            time.sleep(0.1)
            continue
        if line.strip() == "END":
            break
        print("seen:", line, end="")
