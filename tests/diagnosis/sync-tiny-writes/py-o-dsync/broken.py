import os

fd = os.open("readings.csv", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DSYNC, 0o644)
for i in range(600):
    os.write(fd, b"%08d,sensor-7,%06d,celsius,good\n" % (i, i * 37 % 100000))
os.close(fd)
