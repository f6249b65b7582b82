/* unanswered DIRECTORY [files | COMMAND…]: has a stream whose buffer is a file of a FUSE mount in its own namespaces. The server of the mount
 * accepts each read and never answers, so that not even SIGKILL ends a read of this memory. Prints "ready" and waits. A
 * line of input makes it print "again" and end with status 7. Its end ends the server, which frees all.
 *
 * With `files` it has open a file of the mount, whose server is stopped and has not let the kernel keep any status. Until the line of
 * input it writes to the file "plain" of its first working directory. With a command it executes it; such a file is the command's
 * standard output. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES = 1 << 16, PENDING = 100, NOT_PERMITTED = 77, FILE_NODE = 2 };

/* Far more than the 20 ms in which weir looks for new mounts and new mappings. */
enum { PAUSE_US = 200000 };

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    int failed = fd < 0 || write(fd, text, strlen(text)) < 0;
    close(fd);
    return failed;
}

/* Mounts a FUSE file system at `directory` as the root of an own user namespace; returns its descriptor. */
static int mount_fuse(const char *directory)
{
    char map[64], options[96];
    unsigned uid = getuid(), gid = getgid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
        return -1;
    snprintf(map, sizeof map, "0 %u 1", uid);
    if (write_text("/proc/self/setgroups", "deny") || write_text("/proc/self/uid_map", map))
        return -1;
    snprintf(map, sizeof map, "0 %u 1", gid);
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fd < 0 || write_text("/proc/self/gid_map", map))
        return -1;
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
    return mount("fuse", directory, "fuse", MS_NOSUID | MS_NODEV, options) ? -1 : fd;
}

static void answer(int fd, unsigned long unique, int error, const void *data, size_t bytes)
{
    char message[512];
    struct fuse_out_header head = {.len = (unsigned)(sizeof head + bytes), .error = error, .unique = unique};
    memcpy(message, &head, sizeof head);
    if (bytes)
        memcpy(message + sizeof head, data, bytes);
    if (write(fd, message, head.len) < 0 && errno != ENOENT)
        _exit(1);
}

/* Answers all requests but reads. The kernel may use the answers for `seconds`. */
static void serve(int fd, unsigned seconds)
{
    static char request[1 << 17];
    struct fuse_attr attr = {.ino = FILE_NODE, .size = BYTES, .mode = S_IFREG | 0666, .nlink = 1, .blksize = 4096};
    for (;;) {
        if (read(fd, request, sizeof request) < 0)
            _exit(0);
        struct fuse_in_header *head = (void *)request;
        struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096};
        struct fuse_entry_out entry = {.nodeid = FILE_NODE, .entry_valid = seconds, .attr_valid = seconds, .attr = attr};
        struct fuse_attr_out attributes = {.attr_valid = seconds, .attr = attr};
        struct fuse_open_out opened = {.fh = 1};
        if (head->nodeid == FUSE_ROOT_ID) {
            attributes.attr.ino = FUSE_ROOT_ID;
            attributes.attr.mode = S_IFDIR | 0777;
        }
        if (head->opcode == FUSE_INIT)
            answer(fd, head->unique, 0, &init, sizeof init);
        else if (head->opcode == FUSE_LOOKUP)
            answer(fd, head->unique, 0, &entry, sizeof entry);
        else if (head->opcode == FUSE_GETATTR)
            answer(fd, head->unique, 0, &attributes, sizeof attributes);
        else if (head->opcode == FUSE_OPEN)
            answer(fd, head->unique, 0, &opened, sizeof opened);
        else if (head->opcode != FUSE_READ && head->opcode != FUSE_FORGET && head->opcode != FUSE_INTERRUPT)
            answer(fd, head->unique, -ENOSYS, NULL, 0);
    }
}

/* Writes to `plain` until there is input, which ends the process. */
static int write_until_input(int plain, pid_t server)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};
    kill(server, SIGSTOP);
    puts("ready");
    fflush(stdout);
    while (poll(&input, 1, 10) == 0)
        if (write(plain, "line\n", 5) != 5)
            return 1;
    puts("again");
    return 7;
}

/* Executes a command with `file` as its standard output. The server has answered poll(2), which Rust's runtime calls at its start. */
static int execute(char **command, int file, pid_t server)
{
    struct pollfd polled = {.fd = file, .events = POLLOUT};
    poll(&polled, 1, 0);
    dup2(file, 1);
    close(file);
    kill(server, SIGSTOP);
    execvp(command[0], command);
    return 1;
}

int main(int count, char **words)
{
    int only_files = count > 2, plain = open("plain", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (count < 2 || plain < 0 || chdir(words[1]))
        return 1;
    int fd = mount_fuse(".");
    if (fd < 0)
        return NOT_PERMITTED;
    pid_t server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(0);
        close(1);
        close(2);
        serve(fd, only_files ? 0 : 9999);
    }
    close(fd);
    usleep(PAUSE_US);
    char path[4096];
    snprintf(path, sizeof path, "%s/file", words[1]);
    if (only_files) /* the kernel learns that the server has no FUSE_FLUSH, for which the end of the process would wait */
        close(open(path, O_RDWR));
    int file = open(path, O_RDWR);
    if (only_files && file >= 0 && strcmp(words[2], "files"))
        return execute(words + 2, file, server);
    if (only_files)
        return file < 0 ? NOT_PERMITTED : write_until_input(plain, server);
    char *memory = mmap(0, BYTES, PROT_READ, MAP_SHARED, file, 0);
    FILE *stream = fopen("/dev/null", "w");
    if (file < 0 || memory == MAP_FAILED || !stream)
        return NOT_PERMITTED;
    close(file);
    usleep(PAUSE_US);
    fputc('x', stream);
    stream->_IO_buf_base = stream->_IO_write_base = memory;
    stream->_IO_write_ptr = memory + PENDING;
    stream->_IO_buf_end = stream->_IO_write_end = memory + BYTES;
    puts("ready");
    fflush(stdout);
    char line[8];
    if (fgets(line, sizeof line, stdin)) {
        puts("again");
        fflush(stdout);
        _exit(7);
    }
    for (;;)
        pause();
}
