import shutil

shutil.copyfile("source", "copy")
