import os
import threading


def work(report):
    report.write("measured: 17 of 17\n")
    os.write(report.fileno(), b"calibration: none\n")
    report.write("done\n")


with open("report.txt", "w") as report:
    worker = threading.Thread(target=work, args=(report,))
    worker.start()
    worker.join()
