/* Waits for timeouts of a second, in which another thread puts lines into a buffer and sends an ignored signal every
   5 ms. Fails if a wait ends with an error, or does not end in 10 seconds. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static pthread_t waiting;

static void *disturb(void *none) {
    for (int number = 0;; number++) {
        printf("line %d\n", number);
        if (number == 2000) _exit(3);
        if (usleep(5000) || pthread_kill(waiting, SIGURG)) _exit(2);
    }
    return none;
}

int main(void) {
    static char buffer[1 << 20];
    struct epoll_event event;
    pthread_t thread;
    int epoll = epoll_create1(0);
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    waiting = pthread_self();
    pthread_create(&thread, NULL, disturb, NULL);
    for (int number = 0; number < 2; number++) {
        if (epoll_wait(epoll, &event, 1, 1000) != 0) {
            fprintf(stderr, "epoll_wait: %s\n", strerror(errno));
            return 1;
        }
    }
    return 0;
}
