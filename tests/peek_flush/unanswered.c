/* unanswered DIRECTORY [files | COMMAND…]: has a stream whose buffer is a file of a FUSE mount in its own namespaces. The server of the mount
 * accepts each read and never answers, so that not even SIGKILL ends a read of this memory. Prints "ready" and waits. A
 * line of input makes it print "again" and end with status 7. Its end ends the server, which frees all.
 *
 * With `files` it has open a file of the mount, whose server is stopped and has not let the kernel keep any status. Until the line of
 * input it writes to the file "plain" of its first working directory. With a command it executes it; such a file is the command's
 * standard output. */
#include "silent_fuse.h"

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
        serve(fd, only_files ? 0 : 9999, -1);
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
