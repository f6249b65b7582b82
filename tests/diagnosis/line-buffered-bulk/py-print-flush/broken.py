for i in range(250000):
    print("row", i, i * i, sep=",", flush=True)
