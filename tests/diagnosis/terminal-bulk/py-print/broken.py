for i in range(40000):
    print("row", i, "square", i * i, "cube", i * i * i)
