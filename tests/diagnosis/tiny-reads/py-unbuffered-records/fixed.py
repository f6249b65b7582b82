total = 0
with open("records.bin", "rb") as f:
    while record := f.read(4):
        total += int.from_bytes(record, "little")
print(total)
