/* Frees a stream by fclose while another thread flushes it before a write(2). The library calls this program's __fpending. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static FILE *volatile stream;
static volatile int is_flushing, is_closed, was_freed;

size_t __fpending(FILE *of) {
    if (of == stream && !is_flushing) {
        is_flushing = 1;
        for (int i = 0; i < 500 && !is_closed; i++) usleep(1000);
        was_freed = is_closed;
    }
    return 0;
}

static void *write_byte(void *unused) {
    if (write(1, "w", 1) != 1) was_freed = 2;
    return unused;
}

int main(void) {
    pthread_t thread;
    stream = fopen("/dev/null", "w");
    if (!stream || pthread_create(&thread, NULL, write_byte, NULL)) return 2;
    while (!is_flushing) usleep(100);
    fclose(stream);
    is_closed = 1;
    pthread_join(thread, NULL);
    return was_freed;
}
