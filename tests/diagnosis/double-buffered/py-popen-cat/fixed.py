import subprocess  # noqa: F401; imported so that the difference does not include its cost
import zlib

checksum = 0
with open("input", "rb") as source:
    while block := source.read(65536):
        checksum = zlib.crc32(block, checksum)
print(f"{checksum:08x}")
