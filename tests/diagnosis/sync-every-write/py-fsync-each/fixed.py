import os

with open("events.jsonl", "w") as events:
    for i in range(400):
        events.write(f'{{"id": {i}, "kind": "click", "x": {i * 31 % 640}}}\n')
    events.flush()
    os.fsync(events.fileno())
