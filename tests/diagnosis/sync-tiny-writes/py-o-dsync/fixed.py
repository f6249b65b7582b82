import os

fd = os.open("readings.csv", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DSYNC, 0o644)
with open(fd, "wb", buffering=65536) as readings:
    for i in range(600):
        readings.write(b"%08d,sensor-7,%06d,celsius,good\n" % (i, i * 37 % 100000))
