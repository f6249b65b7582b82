"""Appends the lines of standard input to a file: @NAME@.

Use: python3 log.py FILE < records
In a program of your own, use RecordLog with each record as bytes, with its newline.
"""

import os
import sys
%if threads
import threading
%end


class RecordLog:
%if gather
    BUFFER_BYTES = @BUFFER@

%end
    def __init__(self, path):
%if dsync
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_DSYNC
%else
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
%end
        self.fd = os.open(path, flags, 0o666)
%if line
        self.stream = open(self.fd, "w", buffering=1, encoding="utf-8", errors="surrogateescape", newline="")
%end
%if gather
        self.pending = bytearray()
%end
%if threads
        self.lock = threading.Lock()
%end
%if group
        self.synced = threading.Condition(self.lock)
        self.written = self.durable = 0
        self.syncing = False
        self.error = None
%end
%if synced
        os.fsync(self.fd)
        directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(directory)  # without it, a power cut can lose the name of a new file
        os.close(directory)
%end
%if timer
        self.dirty = False
        self.error = None
        self.stopped = threading.Event()
        self.timer = threading.Thread(target=self._run_timer, daemon=True)
        self.timer.start()
%end

    def _write_all(self, data):
        view = memoryview(data)
        while view:  # a nearly full disk can make a write short
            view = view[os.write(self.fd, view) :]

%if gather
    def _flush(self):
        pending, self.pending = self.pending, bytearray()
        self._write_all(pending)

%end
%if timer
    def _run_timer(self):
        while not self.stopped.wait(@PERIOD_S@):
            try:
                self.tick()
            except OSError as error:
                self.error = error  # the next call raises it

    def tick(self):
        """Writes what is pending, and with a sync forces it to the device."""
        with self.lock:
            dirty, self.dirty = self.dirty, False
%if gather
            if dirty:
                self._flush()
%end
%if period
        if dirty:
            os.fdatasync(self.fd)  # without the lock: records go on meanwhile
%end

%end
%if group
    def record(self, data):
        """Returns when the record is on the device. One thread syncs for all that have written meanwhile."""
        with self.lock:
            if self.error:
                raise self.error
            self._write_all(data)
            self.written += 1
            mine = self.written
            while self.durable < mine:
                if self.error:
                    raise self.error
                if self.syncing:
                    self.synced.wait()
                    continue
                covered, self.syncing = self.written, True
                self.lock.release()
                try:
                    os.fdatasync(self.fd)
                except OSError as error:
                    self.error = error
                finally:
                    self.lock.acquire()
                    self.syncing = False
                    if not self.error:
                        self.durable = covered
                    self.synced.notify_all()
%else
    def record(self, data):
%if line
        self.stream.write(data.decode("utf-8", "surrogateescape"))
%end
%if threads
%if gather|each
        with self.lock:
%if timer
            if self.error:
                raise self.error
            self.dirty = True
%end
%if gather
            if len(self.pending) + len(data) > self.BUFFER_BYTES:
                self._flush()  # a write has whole records only
            self.pending += data
%else
            self._write_all(data)
%end
%end
%else
%if gather
        if len(self.pending) + len(data) > self.BUFFER_BYTES:
            self._flush()  # a write has whole records only
        self.pending += data
%end
%if each
        self._write_all(data)
%end
%end
%if sync_record
        os.fdatasync(self.fd)
%end
%end

    def close(self):
%if timer
        self.stopped.set()
        self.timer.join()
        if self.error:
            raise self.error
        self.tick()
%else
%if gather
        self._flush()
%end
%end
%if line
        self.stream.close()
%else
        os.close(self.fd)
%end


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: log.py FILE")
    log = RecordLog(sys.argv[1])
    for line in sys.stdin.buffer:
        log.record(line)
    log.close()


if __name__ == "__main__":
    main()
