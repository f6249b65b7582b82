import os
import sys

print("starting: uname -s")
sys.stdout.flush()
os.execvp("uname", ["uname", "-s"])
