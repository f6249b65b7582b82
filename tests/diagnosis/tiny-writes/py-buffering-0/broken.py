import struct

with open("samples.bin", "wb", buffering=0) as f:
    pack = struct.Struct("<d").pack
    for i in range(450000):
        f.write(pack(i * 0.5))
