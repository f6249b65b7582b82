/* copies CASE: writes a line to the file "log", forks with the line pending, and lets one process write it, or none. The processes
 * wait for each other by a pipe that all of them have. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int ends[2];

/* Returns when all other processes have closed the pipe or ended. */
static void wait_for_others(void) {
    char byte;
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 0) _exit(9);
}

int main(int argc, char **argv) {
    const char *is = argc > 1 ? argv[1] : "";
    FILE *log = fopen("log", "w");
    if (!log || pipe(ends) == -1) return 8;
    fputs("header\n", log);
    int child = fork();
    if (strcmp(is, "daemon") == 0) { /* the parent leaves its copy to the child */
        if (child) _exit(0);
        wait_for_others();
        usleep(100000);
        fputs("child\n", log);
        return fclose(log);
    }
    if (strcmp(is, "killed") == 0) {
        if (child) return raise(SIGTERM);
        wait_for_others();
        fputs("child\n", log);
        return fclose(log);
    }
    if (strcmp(is, "worker") == 0) { /* the child leaves it to the parent, and loses a line of its own */
        if (!child) {
            fputs("child\n", log);
            usleep(150000);
            _exit(0);
        }
        wait(NULL);
        fputs("parent\n", log);
        return fclose(log);
    }
    if (strcmp(is, "executed") == 0) { /* the parent executes another program; the child writes */
        if (child) return execl("/bin/true", "true", (char *)NULL);
        usleep(150000);
        fputs("child\n", log);
        return fclose(log);
    }
    if (strcmp(is, "twice") == 0) { /* a first child writes the header; the parent is killed with it and a row */
        if (!child) {
            usleep(150000);
            return fclose(log);
        }
        fputs("row\n", log);
        if (!fork()) {
            usleep(300000);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        return raise(SIGKILL);
    }
    /* "lost": nobody writes it */
    if (child) _exit(0);
    wait_for_others();
    _exit(0);
}
