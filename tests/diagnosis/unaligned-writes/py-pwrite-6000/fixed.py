import os

FRAME, SLOT = 6000, 8192
ring = os.open("ring", os.O_WRONLY)
for i in range(2400):
    frame = bytes([i % 256]) * FRAME
    os.pwrite(ring, frame.ljust(SLOT, b"\0"), i * SLOT)
os.close(ring)
