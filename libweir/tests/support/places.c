/* places.c: temporary directories and loop mounts, gone when the test ends. */
#include "places.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLACES = 8, LENGTH = 256 };

static char places[PLACES][LENGTH];
static char images[PLACES][LENGTH]; /* "": not mounted */
static int count;
static pid_t owner;

static int run(const char *format, const char *a, const char *b, const char *c)
{
    char command[1024];
    snprintf(command, sizeof command, format, a, b, c);
    return system(command);
}

/* Not in a forked child, for which the handler runs as well. */
static void remove_all(void)
{
    if (getpid() != owner)
        return;
    for (int i = count - 1; i >= 0; i--) {
        if (images[i][0]) {
            umount2(places[i], MNT_DETACH);
            unlink(images[i]);
        }
        run("rm -rf '%s'%s%s", places[i], "", "");
    }
}

const char *place_make(void)
{
    static const char *const parents[] = {"/var/tmp", "/tmp"};
    const char *asked = getenv("WEIR_TEST_DIR");
    for (int i = asked ? -1 : 0; count < PLACES && i < 2; i++) {
        snprintf(places[count], LENGTH, "%s/weir-test-XXXXXX", i < 0 ? asked : parents[i]);
        if (!mkdtemp(places[count]))
            continue;
        if (count++ == 0) {
            owner = getpid();
            atexit(remove_all);
        }
        return places[count - 1];
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

const char *place_mount(const char *type, size_t bytes, const char *options, const char **why)
{
    const char *place = place_make();
    char *image = images[count - 1];
    *why = "only root can mount";
    if (geteuid() != 0)
        return NULL;
    snprintf(image, LENGTH, "%.200s.image", place);
    *why = "no file system could be made";
    if (make_image(image, bytes) != 0 || run("mkfs.%s -q %s '%s' >/dev/null 2>&1", type, options, image) != 0)
        return NULL;
    *why = "it could not be mounted";
    if (run("mount -o loop -t %s '%s' '%s' 2>/dev/null", type, image, place) != 0)
        return NULL;
    return place;
}

bool place_takes_direct(const char *place)
{
    enum { ASK = 0x2000 /* STATX_DIOALIGN */, MASK = 0, BLOCK = 39 /* stx_mask, stx_dio_offset_align */ };
    char path[LENGTH + 8];
    uint32_t status[64] = {0};
    snprintf(path, sizeof path, "%s/try", place);
    int fd = open(path, O_WRONLY | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool told = syscall(SYS_statx, fd, "", AT_EMPTY_PATH, ASK, status) == 0 && status[MASK] & ASK;
    close(fd);
    unlink(path);
    return !told || status[BLOCK] > 0;
}
