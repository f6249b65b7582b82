"""Appends the lines of standard input to a file: @NAME@.

Use: python3 log.py FILE < records
In a program of your own, use RecordLog with each record as bytes, with its newline. Only one thread of one process may
write the file.
%if mmap
A kill leaves NULs at the end of the file: cut them off before the next use.
%else
A write has whole blocks, which divide records: a kill can leave a part of one at the end of the file.
%end
"""

%if direct
import fcntl
%end
import mmap
import os
import sys


%if mmap
class RecordLog:
    WINDOW_BYTES = 4 << 20  # the file grows by so many bytes; a multiple of the page size

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self.end = os.lseek(self.fd, 0, os.SEEK_END)
        self.window = None
        self._map_window()

    def _map_window(self):
        """Moves the window to the end of the records."""
        if self.window:
            self.window.close()
            self.window = None
        self.start = self.end - self.end % mmap.ALLOCATIONGRANULARITY
        # With reserved blocks a full disk is an error here. Otherwise it is SIGBUS at a later store.
        os.posix_fallocate(self.fd, self.start, self.WINDOW_BYTES)
        self.window = mmap.mmap(self.fd, self.WINDOW_BYTES, offset=self.start)

    def record(self, data):
        """Other processes see the record at once; the kernel writes it back like a write(2)."""
        view = memoryview(data)
        while view:
            at = self.end - self.start
            if not self.window or at == self.WINDOW_BYTES:  # no window: the last call found no room
                self._map_window()
                continue
            part = view[: self.WINDOW_BYTES - at]
            self.window[at : at + len(part)] = part
            self.end += len(part)
            view = view[len(part) :]

    def close(self):
        """Cuts off what was reserved. Call it also after an error."""
        if self.window:
            self.window.close()
        os.ftruncate(self.fd, self.end)
        os.close(self.fd)
%end
%if direct
class RecordLog:
    ALIGN = 4096  # no device has larger sectors
    BLOCK_BYTES = @BUFFER@

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self.block = mmap.mmap(-1, self.BLOCK_BYTES)  # memory that begins at a page
        # The first block begins with the bytes after the last aligned offset.
        end = os.lseek(self.fd, 0, os.SEEK_END)
        self.used = end % self.ALIGN
        self.start = end - self.used
        self.block[: self.used] = os.pread(self.fd, self.used, self.start)
        fcntl.fcntl(self.fd, fcntl.F_SETFL, os.O_DIRECT)  # EINVAL: this file system does not have it

    def _write_block(self, size):
        with memoryview(self.block) as view:
            done = 0
            while done < size:
                done += os.pwrite(self.fd, view[done:size], self.start + done)

    def record(self, data):
        """The record is in the file when its block is full."""
        view = memoryview(data)
        while view:
            part = view[: self.BLOCK_BYTES - self.used]
            self.block[self.used : self.used + len(part)] = part
            self.used += len(part)
            view = view[len(part) :]
            if self.used == self.BLOCK_BYTES:
                self._write_block(self.BLOCK_BYTES)
                self.start += self.BLOCK_BYTES
                self.used = 0

    def close(self):
        if self.used:  # the last block is padded, and the padding cut off
            padded = -(-self.used // self.ALIGN) * self.ALIGN
            self.block[self.used : padded] = bytes(padded - self.used)
            self._write_block(padded)
            os.ftruncate(self.fd, self.start + self.used)
        os.close(self.fd)
%end


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: log.py FILE")
    log = RecordLog(sys.argv[1])
%if mmap
    try:
        for line in sys.stdin.buffer:
            log.record(line)
    finally:
        log.close()
%else
    for line in sys.stdin.buffer:
        log.record(line)
    log.close()
%end


if __name__ == "__main__":
    main()
