import json
import os

state = {f"user{i}": {"score": i * 10, "level": i % 7} for i in range(200)}
with open("state.json.tmp", "w") as f:
    json.dump(state, f)
    f.flush()
    os.fsync(f.fileno())
os.replace("state.json.tmp", "state.json")
directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
os.fsync(directory)
os.close(directory)
