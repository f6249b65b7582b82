# Leaves two lines each in standard output and in the file log, and waits; with an argument kills itself.
import os, signal, sys, time
log = open("log", "w")
for i in range(2):
    print("out", i)
    log.write("log %d\n" % i)
open("ready", "w").close()
if len(sys.argv) > 1:
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(60)
