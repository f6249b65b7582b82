/* Writes in a signal handler, or executes a program there, while stdio is at work. argv[1] names the case. Prints what the reader got. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 4096 };
static int note;
static sigjmp_buf back;

static void write_nothing(int number) {
    (void)number;
    if (write(note, "h", 1) != 1 || write(1, "", 0)) _exit(8);
}

static void write_text(int number) {
    (void)number;
    if (write(1, "handler ", 8) != 8) _exit(8);
}

static void execute(int number) {
    (void)number;
    execl("/bin/true", "true", (char *)NULL);
    _exit(8);
}

static void execute_sleeper(int number) {
    (void)number;
    if (write(note, "h", 1) != 1) _exit(8);
    execl("/bin/true", "true", (char *)NULL);
    _exit(8);
}

static void jump(int number) {
    (void)number;
    siglongjmp(back, 1);
}

/* Waits until a process sleeps in write(2) or writev(2). */
static void await_write(pid_t pid) {
    char path[64], call[64] = "";
    snprintf(path, sizeof path, "/proc/%d/syscall", pid);
    while (atoi(call) != SYS_write && atoi(call) != SYS_writev) {
        FILE *file = fopen(path, "r");
        if (!file || !fgets(call, sizeof call, file)) call[0] = 0;
        if (file) fclose(file);
        usleep(1000);
    }
}

static void print_with_lock(int n) { printf("%07d\n", n); }
static void print_without_lock(int n) {
    char text[16];
    snprintf(text, sizeof text, "%07d\n", n);
    for (char *at = text; *at; at++) putchar(*at);
}

/* A child prints to a full pipe, gets a signal while it waits in write(2), and goes on when the pipe is read. Counts wrong lines. */
static void in_write(void (*print)(int), void (*handler)(int)) {
    int data[2], notes[2], status;
    char byte;
    if (pipe(data) || pipe(notes)) exit(9);
    fcntl(data[1], F_SETPIPE_SZ, ROOM);
    pid_t child = fork();
    if (!child) {
        static char buffer[3 * ROOM];
        note = notes[1];
        dup2(data[1], 1);
        close(data[0]);
        close(data[1]);
        setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
        sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART}, NULL);
        for (int n = 0; n < 10 * ROOM / 8; n++) print(n);
        fflush(stdout);
        _exit(0);
    }
    close(data[1]);
    close(notes[1]);
    await_write(child);
    kill(child, SIGUSR1);
    if (read(notes[0], &byte, 1) != 1) exit(9);
    FILE *from = fdopen(data[0], "r");
    char line[64];
    int lines = 0, wrong = 0;
    for (; fgets(line, sizeof line, from); lines++) wrong += atoi(line) != lines || strlen(line) != 8;
    waitpid(child, &status, 0);
    if (handler == execute_sleeper) wrong += lines * 8 > 2 * ROOM; /* more than write(2) has accepted, and one read */
    printf("%d lines wrong, status %d", wrong, status);
}

/* Writes after a jump out of a handler: the handler does not count as running. */
static void after_jump(void) {
    signal(SIGUSR1, jump);
    if (!sigsetjmp(back, 1)) raise(SIGUSR1);
    printf("stdio ");
    if (write(1, "write ", 6) != 6) _exit(8);
}

/* Checks that the program sees its own handlers. */
static void see_actions(void) {
    struct sigaction seen;
    int right = signal(SIGUSR1, write_text) == SIG_DFL && signal(SIGUSR1, jump) == write_text;
    right += !sigaction(SIGUSR1, NULL, &seen) && seen.sa_handler == jump;
    right += !sigaction(SIGUSR1, &(struct sigaction){.sa_handler = SIG_IGN}, &seen) && seen.sa_handler == jump;
    right += signal(SIGUSR1, SIG_DFL) == SIG_IGN && signal(SIGUSR1, SIG_DFL) == SIG_DFL;
    printf("%d right", right);
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "";
    if (!strcmp(how, "locked")) in_write(print_with_lock, write_nothing);
    if (!strcmp(how, "unlocked")) in_write(print_without_lock, write_nothing);
    if (!strcmp(how, "locked-exec")) in_write(print_with_lock, execute_sleeper);
    if (!strcmp(how, "unlocked-exec")) in_write(print_without_lock, execute_sleeper);
    if (!strcmp(how, "jump")) after_jump();
    if (!strcmp(how, "actions")) see_actions();
    if (!strcmp(how, "idle")) printf("stdio "), signal(SIGUSR1, write_text), raise(SIGUSR1);
    if (!strcmp(how, "idle-exec")) printf("stdio "), signal(SIGUSR1, execute), raise(SIGUSR1);
    return 0;
}
