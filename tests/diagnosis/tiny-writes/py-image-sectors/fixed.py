with open("image", "wb", buffering=65536) as image:
    for number in range(200_000):
        image.write(number.to_bytes(8, "little") * 64)
