#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FRAME = 1 << 20, FRAMES = 30 };
static char frame[FRAME];

static void take_frames(int out)
{
    for (int i = 0; i < FRAMES; i++) {
        usleep(12000); /* the exposure */
        for (size_t done = 0; done < FRAME;) {
            ssize_t put = write(out, frame + done, FRAME - done);
            if (put < 0)
                _exit(1);
            done += (size_t)put;
        }
    }
}

static long store_frames(int in)
{
    ssize_t got;
    long total = 0;

    while ((got = read(in, frame, 65536)) > 0) {
        usleep(600); /* in place of the device that stores 64 KiB */
        total += got;
    }
    return total;
}

int main(void)
{
    int ends[2];

    if (pipe(ends))
        return 1;
    if (fork() == 0) {
        close(ends[0]);
        take_frames(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    printf("%ld\n", store_frames(ends[0]));
    wait(NULL);
    return 0;
}
