with open("app.log") as log:
    while True:
        line = log.readline()
        if not line:
            continue
        if line.strip() == "END":
            break
        print("seen:", line, end="")
