VALUES = 150000 * 16

total = 0
with open("store", "rb") as store:
    for i in range(120000):
        store.seek(i * 16)
        key = int(store.read(16))
        store.seek(VALUES + i * 16)
        total += key * int(store.read(16))
print(total)
