"""log_message, sensor_csv: the content of the file during the run and after a kill."""
import datetime
import os
import re
import signal
import subprocess
import time

from harness import content, fails, refuses, run, running, succeeds, traced, wait_until

STAMP = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"


def lines_of(path):
    return content(path).splitlines(keepends=True)


def test_log_messages_are_appended_with_the_time():
    before = datetime.datetime.now().replace(microsecond=0)
    succeeds("log_message", "one", "two")
    succeeds("log_message", "-l", "three")
    after = datetime.datetime.now()
    lines = lines_of("app.log")
    messages = [re.sub(rb"^\[" + STAMP + rb"\] ", b"", line) for line in lines]
    assert messages == [b"one\n", b"two\n", b"three\n"]
    for line in lines:
        assert before <= datetime.datetime.fromisoformat(line[1:20].decode()) <= after


def test_log_messages_without_newline():
    for options in ["-n"], ["-n", "-l"]:
        succeeds("log_message", *options, "-o", "f", "one", "two")
        assert re.fullmatch(rb"\[" + STAMP + rb"\] one\[" + STAMP + rb"\] two", content("f")), content("f")
        os.unlink("f")


def log_then_kill(*options):
    """Kills log_message after its third message. Returns the content of the file before and after the kill."""
    with running("log_message", *options, "-w", "0.2", "one", "two", "three", "never") as child:
        time.sleep(0.55)
        before = content("app.log")
        child.send_signal(signal.SIGKILL)
        child.wait()
    return before, content("app.log")


def test_log_killed_in_default_mode_loses_all():
    before, after = log_then_kill()
    assert before == b"" and after == b""


def test_log_killed_in_line_mode_keeps_whole_lines():
    with running("log_message", "-l", "-w", "60", "one", "two") as child:
        wait_until(lambda: content("app.log").endswith(b" one\n"), "the first line is in the file")
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert re.fullmatch(rb"\[" + STAMP + rb"\] one\n", content("app.log"))


def test_log_killed_in_line_mode_loses_incomplete_lines():
    before, after = log_then_kill("-l", "-n")
    assert before == b"" and after == b""


def test_log_line_mode_makes_one_write_per_message():
    calls = traced("log_message", "-l", "one", "two", "three", calls="write,writev,pwrite64")
    assert len(calls) == 3, calls
    os.unlink("app.log")
    calls = traced("log_message", "one", "two", "three", calls="write,writev,pwrite64")
    assert len(calls) == 1, calls


def test_log_errors():
    fails("log_message", "-o", "/dev/full", "one", naming=["/dev/full", "No space left on device"])
    fails("log_message", "-l", "-o", "/dev/full", "one", naming=["/dev/full", "No space left on device"])
    fails("log_message", "-o", ".", "one", naming=[".: ", "Is a directory"])
    for arguments in [], ["-x", "m"], ["-w", "x", "m"], ["-o"]:
        refuses("log_message", *arguments)


READING = re.compile(rb"^" + STAMP + rb",-?\d+\.\d\n$")


def simulated(*arguments):
    result = run("sensor_csv", "--simulate", *arguments)
    assert result.status == 0 and result.out == b"" and "simulated" in result.err, result
    return result


def test_sensor_reports_that_values_are_simulated():
    simulated("-n", 5, "-i", 0)
    lines = lines_of("temperatures.csv")
    assert len(lines) == 5 and all(READING.match(line) for line in lines), lines
    simulated("-n", 2, "-i", 0)
    assert len(lines_of("temperatures.csv")) == 7


def test_sensor_file_is_read_each_time():
    with open("temp", "w") as sensor:
        sensor.write("25500\n")
    with running("sensor_csv", "-i", "0.1", "-o", "f", "temp", stderr=subprocess.PIPE):
        wait_until(lambda: len(lines_of("f")) >= 1, "a line is in the file")
        with open("new", "w") as sensor:
            sensor.write("-1250\n")
        os.rename("new", "temp")
        wait_until(lambda: b",-1.2\n" in content("f"), "a line with the new value is in the file")
    assert lines_of("f")[0].endswith(b",25.5\n")


def test_sensor_killed_loses_nothing():
    with running("sensor_csv", "--simulate", "-i", "0.05", "-o", "f", stderr=subprocess.DEVNULL) as child:
        wait_until(lambda: len(lines_of("f")) >= 4, "four lines are in the file")
        child.send_signal(signal.SIGKILL)
        child.wait()
    lines = lines_of("f")
    assert len(lines) >= 4 and all(READING.match(line) for line in lines), lines


def test_sensor_makes_one_write_per_line_and_one_sync_with_sync():
    calls = traced("sensor_csv", "--simulate", "-n", 4, "-i", 0, "-o", "f",
                   calls="write,writev,pwrite64,pwritev2,fdatasync,fsync")
    writes = [call for call in calls if not call.startswith("write(2,")]
    assert len(writes) == 4 and all("write" in call for call in writes), calls
    calls = traced("sensor_csv", "--simulate", "--sync", "-n", 4, "-i", 0, "-o", "f",
                   calls="write,writev,pwrite64,pwritev2,fdatasync,fsync")
    synced = [call for call in calls if re.match(r"fdatasync|fsync|pwritev2.*RWF_DSYNC", call)]
    assert len(synced) == 4, calls


def test_sensor_begins_a_new_line_after_a_torn_one():
    for left, expected in (b"2025-07-22T10:3", b"2025-07-22T10:3\n"), (b"whole\n", b"whole\n"), (b"", b""):
        with open("f", "wb") as file:
            file.write(left)
        simulated("-n", 1, "-i", 0, "-o", "f")
        assert content("f").startswith(expected) and READING.match(content("f")[len(expected):]), content("f")


def test_sensor_keeps_the_interval():
    start = time.monotonic()
    simulated("-n", 4, "-i", 0.2)
    assert 0.55 < time.monotonic() - start < 10


def test_sensor_that_fails_for_a_while_omits_lines():
    with open("temp", "w") as sensor:
        sensor.write("1000\n")
    with running("sensor_csv", "-i", "0.1", "-n", "12", "-o", "f", "temp", stderr=subprocess.PIPE) as child:
        wait_until(lambda: len(lines_of("f")) >= 2, "two lines are in the file")
        os.unlink("temp")
        time.sleep(0.25)
        with open("new", "w") as sensor:
            sensor.write("2000\n")
        os.rename("new", "temp")
        _, err = child.communicate(timeout=20)
    lines = lines_of("f")
    assert child.returncode == 1 and b"temp: No such file or directory" in err, err
    assert 2 < len(lines) < 12 and all(READING.match(line) for line in lines), lines


def test_sensor_errors():
    for arguments in [], ["--simulate", "temp"], ["a", "b"], ["--simulate", "-n", "x"], \
            ["--simulate", "-i", "x"]:
        refuses("sensor_csv", *arguments)
    fails("sensor_csv", "no-such", naming=["no-such", "No such file or directory"])
    with open("words", "w") as file:
        file.write("warm\n")
    fails("sensor_csv", "words", naming=["words"])
    result = run("sensor_csv", "--simulate", "-n", 1, "-o", "/dev/full")
    assert result.status == 1 and "/dev/full: No space left on device" in result.err, result
