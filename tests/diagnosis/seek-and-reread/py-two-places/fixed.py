VALUES = 150000 * 16

total = 0
with open("store", "rb") as keys, open("store", "rb") as values:
    values.seek(VALUES)
    for _ in range(120000):
        key = int(keys.read(16))
        total += key * int(values.read(16))
print(total)
