import subprocess
import zlib

checksum = 0
with subprocess.Popen(["cat", "input"], stdout=subprocess.PIPE) as cat:
    while block := cat.stdout.read(65536):
        checksum = zlib.crc32(block, checksum)
print(f"{checksum:08x}")
