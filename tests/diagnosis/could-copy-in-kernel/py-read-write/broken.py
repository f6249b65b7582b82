with open("source", "rb") as source, open("copy", "wb") as target:
    while block := source.read(4096):
        target.write(block)
