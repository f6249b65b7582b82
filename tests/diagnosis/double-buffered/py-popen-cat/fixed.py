import subprocess  # noqa: F401; what importing it costs is no part of the difference
import zlib

checksum = 0
with open("input", "rb") as source:
    while block := source.read(65536):
        checksum = zlib.crc32(block, checksum)
print(f"{checksum:08x}")
