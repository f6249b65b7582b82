import os
import sys

log = open("reload.log", "a")
if len(sys.argv) == 1:
    for name in ("users", "groups", "hosts"):
        log.write(f"loaded {name}\n")
    log.write("code has changed, reloading\n")
    log.close()
    os.execv(sys.executable, [sys.executable, __file__, "again"])
log.write("second run\n")
log.close()
