/* claims: four streams say that they hold 1000 MiB each, all in one mapping without pages. Prints "ready". */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static void point(FILE *stream, char *memory, size_t bytes)
{
    fputc('x', stream);
    stream->_IO_buf_base = stream->_IO_write_base = memory;
    stream->_IO_write_ptr = memory + bytes - 1;
    stream->_IO_buf_end = stream->_IO_write_end = memory + bytes;
    stream->_IO_read_base = stream->_IO_read_ptr = stream->_IO_read_end = memory;
}

int main(void)
{
    size_t bytes = (size_t)1000 << 20;
    int access = PROT_READ | PROT_WRITE, kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *memory = mmap(NULL, bytes, access, kind, -1, 0);
    for (int stream = 0; stream < 4; stream++)
        point(fopen("/dev/null", "w"), memory, bytes);
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}
