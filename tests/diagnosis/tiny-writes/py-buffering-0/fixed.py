import struct

with open("samples.bin", "wb") as f:
    pack = struct.Struct("<d").pack
    for i in range(450000):
        f.write(pack(i * 0.5))
