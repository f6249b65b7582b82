/* Follows one record of 7 bytes. After each step, prints how many bytes are in the program's buffer and in the file, how
 * many pages are dirty (cachestat(2), Linux 6.5), and how many sectors the device has written so far. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

static const char record[] = "record\n";

static long dirty(int fd)
{
    struct { uint64_t offset, length; } all = {0, 0};
    struct { uint64_t cached, dirty, writeback, evicted, recently; } pages;
    return syscall(SYS_cachestat, fd, &all, &pages, 0) == 0 ? (long)(pages.dirty + pages.writeback) : -1;
}

/* Returns the written sectors, the seventh number of the device's statistics; -1 if the file system has no device. */
static long sectors(dev_t device)
{
    char path[64];
    long written = -1;
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/stat", major(device), minor(device));
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%*s %*s %*s %*s %*s %*s %ld", &written) != 1)
        written = -1;
    if (file)
        fclose(file);
    return written;
}

static void look(const char *step, FILE *file, int fd)
{
    struct stat now;
    fstat(fd, &now);
    printf("%s %zu %lld %ld %ld\n", step, file ? __fpending(file) : 0, (long long)now.st_size, dirty(fd),
           sectors(now.st_dev));
    fflush(stdout);
}

static void put(FILE *file)
{
    for (const char *letter = record; *letter; letter++)
        putc(*letter, file);
}

static FILE *opened(const char *name)
{
    FILE *file = fopen(name, "w");
    if (!file)
        exit(1);
    return file;
}

int main(void)
{
    FILE *file = opened("by-hand");
    put(file);
    look("putc", file, fileno(file));
    fflush(file);
    look("fflush", file, fileno(file));
    fsync(fileno(file));
    look("fsync", file, fileno(file));

    FILE *line = opened("line");
    setvbuf(line, NULL, _IOLBF, 0);
    put(line);
    look("newline", line, fileno(line));

    FILE *full = opened("full");
    for (int times = 0; times < 586; times++) /* 4102 bytes: six more than the buffer's size */
        put(full);
    look("full", full, fileno(full));

    FILE *ends = opened("exit");
    pid_t child = fork();
    if (child == 0) {
        put(ends);
        exit(0);
    }
    waitpid(child, NULL, 0);
    look("exit", NULL, fileno(ends));

    int sync = open("o-sync", O_WRONLY | O_CREAT | O_SYNC, 0600);
    if (sync < 0 || write(sync, record, sizeof record - 1) < 0)
        return 1;
    look("O_SYNC", NULL, sync);
    return 0;
}
