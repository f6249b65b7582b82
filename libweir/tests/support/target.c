/* target.c: files, pipes and paths that a test writes to. */
#include "target.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "test_dirs.h"

static const char *directory;
static char path[300];
static enum target_kind kind;
static int read_end; /* of a pipe */

void target_prepare(void)
{
    directory = test_dir_make();
    snprintf(path, sizeof path, "%s/file", directory);
}

const char *target_directory(void) { return directory; }
const char *target_path(void) { return path; }

int target_open(enum target_kind wanted)
{
    int ends[2], fd;
    kind = wanted;
    if (kind == A_FILE)
        return nameless_file();
    if (kind == A_PIPE) {
        check(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
        read_end = ends[0];
        return ends[1];
    }
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check(fd >= 0 && (kind != REPLACED || write(fd, "old\n", 4) == 4), "%s", path);
    return fd;
}

static int copy_of_pipe(void)
{
    char part[4096];
    ssize_t got;
    int file = nameless_file();
    while ((got = read(read_end, part, sizeof part)) > 0)
        check(write(file, part, (size_t)got) == got, "write");
    close(read_end);
    return file;
}

int target_file(int fd)
{
    if (kind == A_FILE || kind == ON_A_DISK)
        return fd;
    close(fd);
    return kind == A_PIPE ? copy_of_pipe() : open(path, O_RDONLY | O_CLOEXEC);
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
