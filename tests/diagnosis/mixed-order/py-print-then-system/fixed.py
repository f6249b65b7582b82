import os

print("Files:", flush=True)
os.system("echo one two")
print("End.")
