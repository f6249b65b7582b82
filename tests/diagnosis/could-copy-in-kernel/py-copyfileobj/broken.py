import shutil

for number in range(4):
    with open("source", "rb") as source, open(f"copy{number}", "wb") as target:
        shutil.copyfileobj(source, target)
