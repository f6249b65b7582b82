import json
import os

state = {f"user{i}": {"score": i * 10, "level": i % 7} for i in range(200)}
with open("state.json.tmp", "w") as f:
    json.dump(state, f)
os.replace("state.json.tmp", "state.json")
