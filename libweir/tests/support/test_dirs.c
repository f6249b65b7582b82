/* test_dirs.c: temporary directories and loop mounts, which exit(3) removes. */
#include "test_dirs.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DIRS_MAX = 8, PATH_BYTES = 256 };

static char dirs[DIRS_MAX][PATH_BYTES];
static char images[DIRS_MAX][PATH_BYTES]; /* files of the loop devices; "": not mounted */
static int count;
static pid_t owner;

static int run(const char *format, const char *a, const char *b, const char *c)
{
    char command[1024];
    snprintf(command, sizeof command, format, a, b, c);
    return system(command);
}

/* Removes the directories, except in a forked child, which inherits the handler. */
static void remove_all(void)
{
    if (getpid() != owner)
        return;
    for (int i = count - 1; i >= 0; i--) {
        if (images[i][0]) {
            umount2(dirs[i], MNT_DETACH);
            unlink(images[i]);
        }
        run("rm -rf '%s'%s%s", dirs[i], "", "");
    }
}

const char *test_dir_make(void)
{
    static const char *const parents[] = {"/var/tmp", "/tmp"};
    const char *requested = getenv("WEIR_TEST_DIR");
    for (int i = requested ? -1 : 0; count < DIRS_MAX && i < 2; i++) {
        snprintf(dirs[count], PATH_BYTES, "%s/weir-test-XXXXXX", i < 0 ? requested : parents[i]);
        if (!mkdtemp(dirs[count]))
            continue;
        if (count++ == 0) {
            owner = getpid();
            atexit(remove_all);
        }
        return dirs[count - 1];
    }
    perror("a directory for the tests");
    abort();
}

static int make_image(const char *path, size_t bytes)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    int result = ftruncate(fd, (off_t)bytes);
    close(fd);
    return result;
}

const char *test_dir_mount(const char *type, size_t bytes, const char *options, const char **why)
{
    const char *dir = test_dir_make();
    char *image = images[count - 1];
    *why = "only root can mount a file system";
    if (geteuid() != 0)
        return NULL;
    snprintf(image, PATH_BYTES, "%.200s.image", dir);
    *why = "mkfs failed";
    if (make_image(image, bytes) != 0 || run("mkfs.%s -q %s '%s' >/dev/null 2>&1", type, options, image) != 0)
        return NULL;
    *why = "mount failed";
    if (run("mount -o loop -t %s '%s' '%s' 2>/dev/null", type, image, dir) != 0)
        return NULL;
    return dir;
}

bool supports_direct_io(const char *dir)
{
    enum { ASK = 0x2000 /* STATX_DIOALIGN */, MASK = 0, BLOCK = 39 /* stx_mask, stx_dio_offset_align */ };
    char path[PATH_BYTES + 8];
    uint32_t status[64] = {0};
    snprintf(path, sizeof path, "%s/try", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool reported = syscall(SYS_statx, fd, "", AT_EMPTY_PATH, ASK, status) == 0 && status[MASK] & ASK;
    close(fd);
    unlink(path);
    return !reported || status[BLOCK] > 0;
}
