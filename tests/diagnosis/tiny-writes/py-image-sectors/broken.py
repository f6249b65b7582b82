import os

image = os.open("image", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
for number in range(200_000):
    os.write(image, number.to_bytes(8, "little") * 64)
os.close(image)
