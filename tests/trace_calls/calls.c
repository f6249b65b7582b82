/* Makes each call that moves bytes through descriptors, with each flag that changes what it moves, and prints the truth: one
 * line `DESCRIPTOR in|out CALLS BYTES` for each stream. Each case has descriptors of its own. The truth follows from what the
 * other side sent or received, not from the result of the call where that is not the number of bytes moved. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { IN, OUT, FIRST_FD = 40, FDS = 120, PEEKS = 20 };
static struct {
    long calls, bytes;
} truth[FDS][2];
static int next_fd = FIRST_FD;
static char data[8192], room[65536];

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                               \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Counts a call that moved `bytes`, or none if it failed. Returns its result. */
static long moved(int fd, int direction, long bytes)
{
    truth[fd][direction].calls++;
    truth[fd][direction].bytes += bytes > 0 ? bytes : 0;
    return bytes;
}

/* Counts a call whose result is no number of bytes that it moved. Returns its result. */
static long called(int fd, int direction, long bytes, long result)
{
    moved(fd, direction, bytes);
    return result;
}

/* Gives a descriptor the next number of this program. */
static int place(int fd)
{
    CHECK(fd >= 0 && next_fd < FDS && dup2(fd, next_fd) == next_fd);
    close(fd);
    return next_fd++;
}

static void place_pair(int fds[2])
{
    fds[0] = place(fds[0]);
    fds[1] = place(fds[1]);
}

static int new_file(const char *name) { return place(open(name, O_RDWR | O_CREAT | O_TRUNC, 0600)); }

static void new_pipe(int fds[2])
{
    CHECK(pipe(fds) == 0);
    place_pair(fds);
}

static void new_sockets(int type, int fds[2])
{
    CHECK(socketpair(AF_UNIX, type, 0, fds) == 0);
    place_pair(fds);
}

/* Makes two sockets of 127.0.0.1; each is connected to the other. */
static void new_inet_sockets(int type, int fds[2])
{
    struct sockaddr_in address[2];
    socklen_t bytes = sizeof address[0];
    for (int i = 0; i < 2; i++) {
        CHECK((fds[i] = socket(AF_INET, type, 0)) >= 0);
        memset(&address[i], 0, sizeof address[i]);
        address[i].sin_family = AF_INET;
        address[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        CHECK(bind(fds[i], (void *)&address[i], bytes) == 0);
        CHECK(getsockname(fds[i], (void *)&address[i], &bytes) == 0);
    }
    if (type == SOCK_DGRAM) {
        CHECK(connect(fds[0], (void *)&address[1], bytes) == 0 && connect(fds[1], (void *)&address[0], bytes) == 0);
    } else {
        CHECK(listen(fds[1], 1) == 0 && connect(fds[0], (void *)&address[1], bytes) == 0);
        int listener = fds[1];
        CHECK((fds[1] = accept(listener, 0, 0)) >= 0);
        close(listener);
    }
    place_pair(fds);
}

static void files(void)
{
    struct iovec parts[2] = {{data, 700}, {data + 700, 300}}, space[2] = {{room, 100}, {room + 100, 900}};
    int fd = new_file("file");
    CHECK(moved(fd, OUT, write(fd, data, 4096)) == 4096);
    CHECK(moved(fd, OUT, pwrite(fd, data, 500, 100)) == 500);
    CHECK(moved(fd, OUT, writev(fd, parts, 2)) == 1000);
    CHECK(moved(fd, OUT, pwritev(fd, parts, 2, 0)) == 1000);
    CHECK(moved(fd, OUT, pwritev2(fd, parts, 2, -1, 0)) == 1000);
    CHECK(moved(fd, OUT, pwritev2(fd, parts, 2, 0, RWF_APPEND)) == 1000);
    CHECK(moved(fd, OUT, pwritev2(fd, parts, 2, 0, RWF_DSYNC)) == 1000);
    moved(fd, OUT, pwritev2(fd, parts, 2, 0, RWF_NOWAIT)); /* not every file system can */
    moved(fd, OUT, pwritev2(fd, parts, 2, 0, 0x40000000)); /* EOPNOTSUPP */
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    CHECK(moved(fd, IN, read(fd, room, 1000)) == 1000);
    CHECK(moved(fd, IN, pread(fd, room, 300, 50)) == 300);
    CHECK(moved(fd, IN, readv(fd, space, 2)) == 1000);
    CHECK(moved(fd, IN, preadv(fd, space, 2, 10)) == 1000);
    CHECK(moved(fd, IN, preadv2(fd, space, 2, -1, 0)) == 1000);
    moved(fd, IN, preadv2(fd, space, 2, 0, RWF_NOWAIT));
    CHECK(moved(fd, IN, pread(fd, room, 300, 1 << 20)) == 0);
    CHECK(moved(fd, OUT, write(fd, data, 0)) == 0);
}

static void peeks(int type)
{
    int fds[2];
    struct iovec space[2] = {{room, 400}, {room + 400, 600}};
    struct msghdr message = {.msg_iov = space, .msg_iovlen = 2};
    new_sockets(type, fds);
    for (int round = 0; round < 10; round++) { /* a stream's first calls are not counted like the others */
        CHECK(moved(fds[0], OUT, send(fds[0], data, 1000, 0)) == 1000);
        for (int i = 0; i < PEEKS; i++)
            CHECK(called(fds[1], IN, 0, recv(fds[1], room, 1000, MSG_PEEK)) == 1000);
        CHECK(called(fds[1], IN, 0, recv(fds[1], room, 10, MSG_PEEK | MSG_DONTWAIT)) == 10);
        CHECK(called(fds[1], IN, 0, recvmsg(fds[1], &message, MSG_PEEK)) == 1000);
        CHECK(moved(fds[1], IN, recv(fds[1], room, 1000, 0)) == 1000);
        CHECK(moved(fds[1], IN, recv(fds[1], room, 1000, MSG_PEEK | MSG_DONTWAIT)) == -1 && errno == EAGAIN);
    }
}

static void stream_sockets(void)
{
    int fds[2];
    struct iovec parts[2] = {{data, 700}, {data + 700, 300}}, space[2] = {{room, 100}, {room + 100, 2900}};
    struct msghdr out = {.msg_iov = parts, .msg_iovlen = 2}, in = {.msg_iov = space, .msg_iovlen = 2};
    new_inet_sockets(SOCK_STREAM, fds);
    CHECK(moved(fds[0], OUT, send(fds[0], data, 500, MSG_MORE)) == 500);
    CHECK(moved(fds[0], OUT, sendto(fds[0], data, 500, MSG_NOSIGNAL, 0, 0)) == 500);
    CHECK(moved(fds[0], OUT, sendmsg(fds[0], &out, 0)) == 1000);
    CHECK(moved(fds[0], OUT, write(fds[0], data, 4000)) == 4000);
    CHECK(moved(fds[1], IN, recv(fds[1], room, 2000, MSG_WAITALL)) == 2000);
    CHECK(moved(fds[1], IN, recvmsg(fds[1], &in, MSG_WAITALL)) == 3000);
    CHECK(called(fds[1], IN, 600, recv(fds[1], room, 600, MSG_TRUNC | MSG_WAITALL)) == 600); /* discards them */
    CHECK(moved(fds[1], IN, recv(fds[1], room, 4000, 0)) == 400);
    CHECK(moved(fds[1], IN, recv(fds[1], room, 4000, MSG_DONTWAIT)) == -1 && errno == EAGAIN);
    CHECK(moved(fds[0], OUT, send(fds[0], "!", 1, MSG_OOB)) == 1);
    while (moved(fds[1], IN, recv(fds[1], room, 1, MSG_OOB)) != 1)
        usleep(1000);
}

static void datagrams(void)
{
    int fds[2];
    struct iovec space[2] = {{room, 60}, {room + 60, 40}};
    struct msghdr in = {.msg_iov = space, .msg_iovlen = 2};
    new_inet_sockets(SOCK_DGRAM, fds);
    for (int i = 0; i < 5; i++)
        CHECK(moved(fds[0], OUT, send(fds[0], data, 1000, 0)) == 1000);
    CHECK(called(fds[1], IN, 0, recv(fds[1], room, 100, MSG_PEEK | MSG_TRUNC)) == 1000);
    CHECK(called(fds[1], IN, 100, recv(fds[1], room, 100, MSG_TRUNC)) == 1000);
    CHECK(called(fds[1], IN, 0, recv(fds[1], 0, 0, MSG_TRUNC)) == 1000);
    CHECK(called(fds[1], IN, 100, recvmsg(fds[1], &in, MSG_TRUNC)) == 1000);
    CHECK(moved(fds[1], IN, recv(fds[1], room, 100, 0)) == 100);
    CHECK(moved(fds[1], IN, recv(fds[1], room, 2000, MSG_TRUNC)) == 1000);
}

/* The error queue has a copy of the datagram that was refused. */
static void error_queue(void)
{
    struct sockaddr_in nowhere = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct iovec space = {room, 1000};
    struct msghdr message = {.msg_iov = &space, .msg_iovlen = 1};
    int yes = 1, fd = place(socket(AF_INET, SOCK_DGRAM, 0));
    CHECK(setsockopt(fd, IPPROTO_IP, IP_RECVERR, &yes, sizeof yes) == 0);
    CHECK(moved(fd, OUT, sendto(fd, data, 800, 0, (void *)&nowhere, sizeof nowhere)) == 800);
    for (int i = 0; i < 100 && called(fd, IN, 0, recvmsg(fd, &message, MSG_ERRQUEUE)) < 0; i++)
        usleep(1000); /* some machines send no ICMP message */
    CHECK(moved(fd, IN, recv(fd, room, 800, MSG_ERRQUEUE | MSG_DONTWAIT)) == -1 && errno == EAGAIN);
}

/* Receives `count` messages into buffers of `bytes` each, from two parts. */
static int receive(int fd, int count, long bytes, int flags, struct mmsghdr *messages)
{
    static struct iovec space[64][2];
    memset(messages, 0, 64 * sizeof *messages);
    for (int i = 0; i < count; i++) {
        space[i][0] = (struct iovec){room, bytes / 2};
        space[i][1] = (struct iovec){room + bytes / 2, bytes - bytes / 2};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = space[i], .msg_iovlen = 2};
    }
    return recvmmsg(fd, messages, count, flags, 0);
}

static void many_messages(int type, int in_inet)
{
    int fds[2];
    struct mmsghdr messages[64];
    struct iovec parts[64];
    (in_inet ? new_inet_sockets : new_sockets)(type, fds);
    for (int round = 0; round < 10; round++) {
        memset(messages, 0, sizeof messages);
        for (int i = 0; i < 9; i++) {
            parts[i] = (struct iovec){data, 100 + i};
            messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
        }
        CHECK(called(fds[0], OUT, 936, sendmmsg(fds[0], messages, 9, 0)) == 9);
        CHECK(called(fds[1], IN, 0, receive(fds[1], 2, 200, MSG_PEEK | MSG_DONTWAIT, messages)) >= 1);
        CHECK(called(fds[1], IN, 100 + 101, receive(fds[1], 2, 200, 0, messages)) == 2);
        CHECK(called(fds[1], IN, 50, receive(fds[1], 1, 50, in_inet ? MSG_TRUNC : 0, messages)) == 1);
        CHECK(called(fds[1], IN, 633, receive(fds[1], 64, 200, MSG_WAITFORONE, messages)) == 6);
        CHECK(moved(fds[1], IN, receive(fds[1], 64, 200, MSG_DONTWAIT, messages)) == -1 && errno == EAGAIN);
    }
    CHECK(moved(fds[0], OUT, sendmmsg(fds[0], messages, 0, 0)) == 0);
}

static void pipes(void)
{
    int one[2], two[2], three[2];
    struct iovec part = {data, 100}, space = {room, 60};
    new_pipe(one);
    new_pipe(two);
    new_pipe(three);
    CHECK(moved(one[1], OUT, write(one[1], data, 100)) == 100);
    for (int i = 0; i < 5; i++) {
        CHECK(called(one[0], IN, 0, moved(two[1], OUT, tee(one[0], two[1], 4096, 0))) == 100);
    }
    CHECK(called(one[0], IN, 0, moved(two[1], OUT, tee(one[0], two[1], 30, SPLICE_F_NONBLOCK))) == 30);
    CHECK(moved(one[0], IN, read(one[0], room, 100)) == 100);
    CHECK(called(one[0], IN, 0, moved(two[1], OUT, tee(one[0], two[1], 30, SPLICE_F_NONBLOCK))) == -1);
    CHECK(moved(three[1], OUT, moved(two[0], IN, splice(two[0], 0, three[1], 0, 200, SPLICE_F_MOVE))) > 0);
    CHECK(moved(one[1], OUT, vmsplice(one[1], &part, 1, 0)) == 100);
    CHECK(moved(one[0], IN, vmsplice(one[0], &space, 1, 0)) == 60);
    CHECK(moved(one[0], IN, read(one[0], room, 100)) == 40);
    CHECK(moved(one[0], IN, vmsplice(one[0], &space, 1, SPLICE_F_NONBLOCK)) == -1);
    CHECK(moved(three[1], OUT, moved(one[0], IN, splice(one[0], 0, three[1], 0, 200, SPLICE_F_NONBLOCK))) == -1);
}

static void copies(void)
{
    int from = new_file("from"), to = new_file("to"), fds[2];
    loff_t at = 0, start = 0;
    CHECK(moved(from, OUT, write(from, data, 8000)) == 8000);
    CHECK(lseek(from, 0, SEEK_SET) == 0);
    CHECK(moved(from, IN, moved(to, OUT, copy_file_range(from, 0, to, 0, 3000, 0))) == 3000);
    CHECK(moved(from, IN, moved(to, OUT, copy_file_range(from, &at, to, &start, 2000, 0))) == 2000);
    at = 0;
    CHECK(moved(from, IN, moved(to, OUT, sendfile(to, from, &at, 1000))) == 1000);
    CHECK(moved(from, IN, moved(to, OUT, sendfile(to, from, 0, 9999))) == 5000);
    CHECK(moved(from, IN, moved(to, OUT, sendfile(to, from, 0, 9999))) == 0);
    new_pipe(fds);
    at = 0;
    CHECK(moved(from, IN, moved(fds[1], OUT, splice(from, &at, fds[1], 0, 3000, SPLICE_F_MORE))) > 0);
    CHECK(moved(fds[0], IN, moved(to, OUT, splice(fds[0], 0, to, 0, 4096, 0))) > 0);
}

int main(void)
{
    memset(data, 'x', sizeof data);
    files();
    peeks(SOCK_STREAM);
    peeks(SOCK_DGRAM);
    stream_sockets();
    datagrams();
    error_queue();
    many_messages(SOCK_DGRAM, 0);
    many_messages(SOCK_DGRAM, 1);
    pipes();
    copies();
    for (int fd = FIRST_FD; fd < FDS; fd++)
        for (int direction = IN; direction <= OUT; direction++)
            if (truth[fd][direction].calls)
                printf("%d %s %ld %ld\n", fd, direction == IN ? "in" : "out", truth[fd][direction].calls,
                       truth[fd][direction].bytes);
    return 0;
}
