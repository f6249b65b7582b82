import os
import sys

log = os.open("/dev/full", os.O_WRONLY | os.O_APPEND)


def note(text):
    try:
        os.write(log, text.encode() + b"\n")
    except OSError as error:
        sys.exit(f"log: {error}")


for order in range(500):
    note(f"order {order} accepted")
