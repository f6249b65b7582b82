import os

FRAME, SLOT = 6000, 6000
ring = os.open("ring", os.O_WRONLY)
for i in range(2400):
    frame = bytes([i % 256]) * FRAME
    os.pwrite(ring, frame, i * SLOT)
os.close(ring)
