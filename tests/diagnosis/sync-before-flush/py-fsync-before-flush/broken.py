import json
import os

state = {"offset": 71234, "sources": ["a", "b", "c"]}
with open("state.json", "w") as f:
    json.dump(state, f)
    os.fsync(f.fileno())
