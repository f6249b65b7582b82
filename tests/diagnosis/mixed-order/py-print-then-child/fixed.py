import subprocess

for name in ("sysname", "machine"):
    print("The", name, "of this computer:", flush=True)
    subprocess.run(["uname", "-" + name[0]], check=True)
