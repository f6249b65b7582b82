import os

for number in range(50):
    fd = os.open(f"part{number % 5}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with os.fdopen(fd, "w") as part:
        part.write(f"part {number}\n")
