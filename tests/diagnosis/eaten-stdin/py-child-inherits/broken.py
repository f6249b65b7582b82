import subprocess
import sys

count = 0
for line in sys.stdin:
    count += 1
    if count % 100 == 1:  # every hundredth is checked by another program
        subprocess.run(["sh", "./check", line.split()[-1]], check=True)
print("customers:", count)
