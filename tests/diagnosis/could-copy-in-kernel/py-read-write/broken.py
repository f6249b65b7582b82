for number in range(4):
    with open("source", "rb") as source, open(f"copy{number}", "wb") as target:
        while block := source.read(4096):
            target.write(block)
