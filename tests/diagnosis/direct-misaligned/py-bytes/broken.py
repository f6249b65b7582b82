import os
import sys

fd = os.open("frames.raw", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DIRECT)
try:
    for frame in range(10):
        os.write(fd, bytes([frame]) * 10000)
except OSError as error:
    sys.exit(f"frames.raw: {error}")
