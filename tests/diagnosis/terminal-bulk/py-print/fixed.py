with open("rows.txt", "w") as rows:
    for i in range(40000):
        print("row", i, "square", i * i, "cube", i * i * i, file=rows)
print("40000 rows are in rows.txt")
