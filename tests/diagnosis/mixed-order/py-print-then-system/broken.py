import os

print("Files:")
os.system("echo one two")
print("End.")
