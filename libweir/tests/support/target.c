/* target.c: files, pipes, sockets, terminals and paths that a test writes to or reads from. */
#include "target.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "check.h"
#include "test_dirs.h"

static const char *directory;
static char path[300];
static enum target_kind kind;
static int read_end; /* of a pipe, socket or terminal */

void target_prepare(void)
{
    directory = test_dir_make();
    snprintf(path, sizeof path, "%s/file", directory);
}

const char *target_directory(void) { return directory; }
const char *target_path(void) { return path; }

/* Returns the end to write to. The terminal passes on all bytes as they are. */
static int open_terminal(void)
{
    struct termios settings;
    read_end = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    check(grantpt(read_end) == 0 && unlockpt(read_end) == 0, "a terminal");
    int fd = open(ptsname(read_end), O_RDWR | O_NOCTTY | O_CLOEXEC);
    check(tcgetattr(fd, &settings) == 0, "tcgetattr");
    cfmakeraw(&settings);
    check(tcsetattr(fd, TCSANOW, &settings) == 0, "tcsetattr");
    return fd;
}

static int open_pair(void)
{
    int ends[2];
    int failed = kind == TARGET_PIPE ? pipe2(ends, O_CLOEXEC) : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
    check(failed == 0, "a pair of descriptors");
    read_end = ends[0];
    return ends[1];
}

static bool is_read_elsewhere(void) { return kind == TARGET_PIPE || kind == TARGET_SOCKET || kind == TARGET_TERMINAL; }

int target_open(enum target_kind wanted)
{
    int fd;
    kind = wanted;
    if (kind == TARGET_MEMORY_FILE)
        return nameless_file();
    if (is_read_elsewhere())
        return kind == TARGET_TERMINAL ? open_terminal() : open_pair();
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check(fd >= 0 && (kind != TARGET_REPLACED || write(fd, "old\n", 4) == 4), "%s", path);
    return fd;
}

int target_open_filled(enum target_kind wanted, const char *from, size_t bytes)
{
    int fd = target_open(wanted);
    check(write(fd, from, bytes) == (ssize_t)bytes, "write");
    if (!is_read_elsewhere()) {
        lseek(fd, 0, SEEK_SET);
        return fd;
    }
    close(fd);
    return read_end;
}

size_t target_unread(int fd)
{
    char part[4096];
    size_t bytes = 0;
    for (ssize_t got; (got = read(fd, part, sizeof part)) > 0;)
        bytes += (size_t)got;
    close(fd);
    return bytes;
}

/* A terminal has no end: its bytes are there when the writers have ended. */
static int copy_of_unread(void)
{
    char part[4096];
    ssize_t got;
    int file = nameless_file();
    if (kind == TARGET_TERMINAL)
        fcntl(read_end, F_SETFL, O_NONBLOCK);
    while ((got = read(read_end, part, sizeof part)) > 0)
        check(write(file, part, (size_t)got) == got, "write");
    close(read_end);
    return file;
}

int target_file(int fd)
{
    if (kind == TARGET_MEMORY_FILE || kind == TARGET_DISK_FILE)
        return fd;
    if (kind == TARGET_TERMINAL) { /* bytes get lost when its last descriptor is closed */
        int file = copy_of_unread();
        close(fd);
        return file;
    }
    close(fd);
    return is_read_elsewhere() ? copy_of_unread() : open(path, O_RDONLY | O_CLOEXEC);
}

bool target_is_old(void)
{
    char start[4];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is_old = pread(fd, start, 4, 0) == 4 && memcmp(start, "old\n", 4) == 0;
    close(fd);
    return is_old;
}

int target_temporaries(bool remove)
{
    int count = 0;
    DIR *all = opendir(directory);
    for (struct dirent *e; (e = readdir(all)) != NULL;) {
        if (e->d_name[0] != '.' || !e->d_name[1] || e->d_name[1] == '.')
            continue;
        count++;
        if (remove)
            unlinkat(dirfd(all), e->d_name, 0);
    }
    closedir(all);
    return count;
}
