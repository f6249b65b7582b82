import os
import socket

ours, theirs = socket.socketpair()
message = b"measured value 17; " * 10000
if os.fork() == 0:
    ours.close()
    total = 0
    while block := theirs.recv(65536):
        total += len(block)
    print(total, flush=True)
    os._exit(0)
theirs.close()
for i in range(len(message)):
    ours.send(message[i:i + 1])
ours.close()
os.wait()
