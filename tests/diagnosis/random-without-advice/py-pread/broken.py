import os
import random

pick = random.Random(5)
table = os.open("table", os.O_RDONLY)
blocks = os.fstat(table).st_size // 4096
total = 0
for _ in range(4000):
    total += os.pread(table, 4096, pick.randrange(blocks) * 4096)[14]
print(total)
