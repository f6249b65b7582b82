/* silent_mount DIRECTORY cwd|root|exe|read|[--cwd] COMMAND…: mounts a FUSE file system, whose server then stops, in own namespaces, and
 *   cwd:  has it as its working directory,
 *   root: has it as its root,
 *   exe:  executes itself from it,
 *   read: sleeps in a read of it that not even SIGKILL ends, after a stream has pending bytes,
 *   [--cwd] COMMAND…: executes a command, with --cwd in the mount. As root, the mount is then that of user 65534 in the user namespace of root, and root may ask.
 * Has pending bytes for the file "pending" and prints "ready". A line of input makes it print "again" and end with status 7 by
 * _exit(2). Its end ends the server. */
#include "silent_fuse.h"

/* Mounts as fusermount(1) does for a user whom /etc/fuse.conf permits allow_other. */
static int mount_for_user(const char *directory)
{
    char options[96];
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return -1;
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=65534,group_id=65534,allow_other", fd);
    return mount("fuse", directory, "fuse", MS_NOSUID | MS_NODEV, options) ? -1 : fd;
}

/* Waits for a line of input with pending bytes in a stream. */
static int wait_with_pending_bytes(FILE *stream)
{
    char line[8];
    fputs("pending\n", stream);
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        return 1;
    puts("again");
    fflush(stdout);
    _exit(7);
}

/* Sleeps while bytes pend; the server prints "ready". */
static int read_for_ever(const char *directory, FILE *stream)
{
    char path[4096], byte;
    snprintf(path, sizeof path, "%s/file", directory);
    fputs("pending\n", stream);
    int file = open(path, O_RDONLY);
    return file < 0 || read(file, &byte, 1) != 1;
}

int main(int count, char **words)
{
    if (count == 3 && !strcmp(words[1], "executed")) {
        mlockall(MCL_CURRENT | MCL_FUTURE);
        kill(atoi(words[2]), SIGSTOP);
        return wait_with_pending_bytes(fdopen(9, "w"));
    }
    if (count < 3)
        return 1;
    int image = open(words[0], O_RDONLY | O_CLOEXEC), commands = count > 3, pending = -1;
    int moves = commands && !strcmp(words[2], "--cwd");
    const char *mode = words[2];
    FILE *stream = NULL;
    if (!commands) {
        pending = open("pending", O_WRONLY | O_CREAT | O_TRUNC, 0666);
        dup2(pending, 9);
        stream = fdopen(9, "w");
    }
    int fd = commands && getuid() == 0 ? mount_for_user(words[1]) : mount_fuse(words[1]);
    if (fd < 0)
        return NOT_PERMITTED;
    pid_t server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setsid(); /* the signals of the terminal do not end the server */
        announced = strcmp(mode, "read") ? -1 : 1;
        close(0);
        close(2);
        if (announced < 0)
            close(1);
        if (chdir("/"))
            _exit(1);
        serve(fd, 0, strcmp(mode, "read") ? image : -1);
    }
    close(fd);
    usleep(PAUSE_US);
    if (!strcmp(mode, "read"))
        return read_for_ever(words[1], stream);
    if (!strcmp(mode, "exe")) {
        char path[4096], number[16];
        snprintf(path, sizeof path, "%s/file", words[1]);
        snprintf(number, sizeof number, "%d", server);
        execl(path, "silent_mount", "executed", number, NULL);
        return NOT_PERMITTED;
    }
    if ((!commands || moves) && chdir(words[1]))
        return NOT_PERMITTED;
    if (!strcmp(mode, "root") && chroot("."))
        return NOT_PERMITTED;
    struct stat about;
    if (commands && stat(words[1], &about))
        return NOT_PERMITTED;
    kill(server, SIGSTOP);
    if (!commands)
        return wait_with_pending_bytes(stream);
    execvp(words[2 + moves], words + 2 + moves);
    return NOT_PERMITTED;
}
