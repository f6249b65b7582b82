import mmap
import os
import sys

fd = os.open("frames.raw", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DIRECT)
page = mmap.mmap(-1, 12288)  # whole pages, at the start of a page
try:
    for frame in range(10):
        page[:] = bytes([frame]) * 12288
        os.write(fd, page)
except OSError as error:
    sys.exit(f"frames.raw: {error}")
