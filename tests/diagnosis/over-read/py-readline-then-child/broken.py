import subprocess
import sys

heading = sys.stdin.readline()
print("column:", heading.strip(), flush=True)
subprocess.run(["wc", "-l"], check=True)
