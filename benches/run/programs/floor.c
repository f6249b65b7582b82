/* floor.c: a library that gathers single bytes from standard input and to standard output in buffers of 64 KiB, and checks
   nothing: not the descriptor's file, its position, other threads, signals or addresses. No library that a program loads
   can gather its calls for less, so its time is the floor for `weir run --coalesce`. */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROOM = 65536 };
static char input[ROOM], output[ROOM];
static size_t input_at, input_end, output_end;

static void drain(void) {
    if (output_end > 0) (void)!syscall(SYS_write, 1, output, output_end);
    output_end = 0;
}

ssize_t read(int fd, void *to, size_t bytes) {
    if (fd != 0 || bytes > ROOM) return syscall(SYS_read, fd, to, bytes);
    if (input_at == input_end) {
        long got = syscall(SYS_read, 0, input, sizeof input);
        if (got <= 0) return got;
        input_at = 0;
        input_end = (size_t)got;
    }
    size_t taken = input_end - input_at < bytes ? input_end - input_at : bytes;
    memcpy(to, input + input_at, taken);
    input_at += taken;
    return (ssize_t)taken;
}

ssize_t write(int fd, const void *from, size_t bytes) {
    if (fd != 1 || bytes > ROOM) return syscall(SYS_write, fd, from, bytes);
    if (output_end + bytes > sizeof output) drain();
    memcpy(output + output_end, from, bytes);
    output_end += bytes;
    return (ssize_t)bytes;
}

__attribute__((destructor)) static void end(void) { drain(); }
