import os
import threading


def restart():
    print("restarting after 3 jobs", flush=True)
    os.execv("/bin/true", ["true"])


threading.Thread(target=restart).start()
