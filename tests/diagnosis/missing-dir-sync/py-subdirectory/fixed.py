import os

for step in (100, 200, 300):
    with open("checkpoints/new", "wb") as f:
        f.write(bytes(range(256)) * 100)
        f.flush()
        os.fsync(f.fileno())
    os.rename("checkpoints/new", f"checkpoints/step{step}")
    directory = os.open("checkpoints", os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(directory)
    os.close(directory)
