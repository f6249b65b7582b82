import os
import subprocess
import time

ours, theirs = os.pipe()
reader = subprocess.Popen(["sh", "-c", "sleep 0.1; wc -c"], stdin=ours)
os.close(ours)
os.set_blocking(theirs, False)
page = b"<p>a paragraph of the page</p>\n" * 6500
os.write(theirs, page)
time.sleep(0.2)
os.close(theirs)
reader.wait()
