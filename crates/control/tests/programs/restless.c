/* Writes output that only the seed determines, at a changing speed: in bursts and one by one, with sleeps, computation
   and flushes. argv[1] is the mode: p plain, w with write(2), f and u with forks, s seeks, 2 two streams, t threads,
   e executes itself; argv[2] the seed, argv[3] the number of lines. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned long state;

static unsigned draw(unsigned below) {
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(state >> 33) % below;
}

static void compute(long microseconds) {
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        clock_gettime(CLOCK_MONOTONIC, &to);
    } while ((to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000 < microseconds);
}

static void idle(long pause) {
    /* The kind of pause does not affect the output. */
    static unsigned turn;
    switch (turn++ % 4) {
    case 0: usleep((useconds_t)pause); break;
    case 1: compute(pause); break;
    case 2: compute(pause / 2); usleep((useconds_t)pause / 2); break;
    default: break;
    }
}

static void line(FILE *to, long number) {
    unsigned length = draw(60);
    switch (draw(4)) {
    case 0: fprintf(to, "%ld %0*d\n", number, (int)length, 7); break;
    case 1:
        for (unsigned at = 0; at < length; at++) putc_unlocked('a' + (int)draw(26), to);
        putc_unlocked('\n', to);
        break;
    case 2: {
        char block[64];
        memset(block, 'z', sizeof block);
        fwrite(block, 1, length, to);
        fputc('\n', to);
        break;
    }
    default: fputs("the quick brown fox\n", to); break;
    }
}

/* Forks a child that calls exit(3) and so writes the bytes pending at the fork too, unless `clean` flushes them. */
static void fork_child(int clean) {
    unsigned flush = draw(2);
    if (flush || clean) fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (flush) printf("child\n");
        exit(0);
    }
    waitpid(child, 0, 0);
}

static void seek(const char *path, long lines) {
    FILE *file = fopen(path, "w+");
    if (!file) exit(9);
    for (long number = 0; number < lines; number++) {
        line(file, number);
        if (draw(8) == 0) {
            char back[8];
            fseek(file, -(long)draw(5), SEEK_CUR);
            if (fread(back, 1, draw(4), file) > 0) ungetc(back[0], file);
            fseek(file, 0, draw(2) ? SEEK_END : SEEK_CUR);
            if (draw(2)) printf("at %ld\n", ftell(file));
        }
        if (draw(4) == 0) idle(draw(3000));
    }
    rewind(file);
    for (int c; (c = getc(file)) != EOF;) putchar(c);
    fclose(file);
}

static void *print_lines(void *lines) {
    for (long number = 0; number < (long)lines; number++) {
        printf("thread\n");
        if (number % 16 == 0) usleep(500);
    }
    return 0;
}

static void two_streams(long lines) {
    FILE *second = fdopen(dup(1), "w");
    for (long number = 0; number < lines; number++) {
        line(stdout, number);
        if (draw(5) == 0) {
            idle(draw(4000));
            fflush(stdout);
            line(second, number);
            idle(draw(4000));
            fflush(second);
        }
    }
    fclose(second);
}

static void plain(long lines, int kind) {
    for (long number = 0; number < lines; number++) {
        line(stdout, number);
        if (draw(12) == 0) idle(draw(6000));
        if (draw(40) == 0) fflush(stdout);
        if (kind == 'w' && draw(30) == 0) {
            fflush(stdout);
            if (write(1, "by write(2)\n", 12) != 12) _exit(8);
        }
        if ((kind == 'f' || kind == 'u') && draw(60) == 0) fork_child(kind == 'f');
    }
}

int main(int count, char **words) {
    if (count < 4) return 2;
    long lines = atol(words[3]);
    state = strtoul(words[2], 0, 10);
    char *buffer = malloc(1 << 16);
    if (draw(2)) setvbuf(stdout, buffer, _IOFBF, 16u << draw(13));
    switch (words[1][0]) {
    case 's': seek(words[4], lines); break;
    case '2': two_streams(lines); break;
    case 't': {
        pthread_t thread;
        pthread_create(&thread, 0, print_lines, (void *)lines);
        print_lines((void *)lines);
        pthread_join(thread, 0);
        break;
    }
    case 'e':
        plain(lines, 'p');
        fflush(stdout);
        execl("/proc/self/exe", words[0], "p", words[2], words[3], (char *)0);
        return 7;
    default: plain(lines, words[1][0]);
    }
    return 0;
}
