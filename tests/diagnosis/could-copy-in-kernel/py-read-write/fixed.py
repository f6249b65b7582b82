import shutil

for number in range(4):
    shutil.copyfile("source", f"copy{number}")
