import os

out = open("rows.csv", "w")
out.write("number,square\n")
for number in range(2):
    if os.fork() == 0:
        out.write(f"{number},{number * number}\n")
        os._exit(0)
for _ in range(2):
    os.wait()
out.write("end\n")
out.close()
