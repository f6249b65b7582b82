/* update MODE: writes a line to the file "log", opened in this mode of fopen(3), and forks with the line pending. Both processes flush
 * it. The parent then writes another line and prints the whole file, which it reads by the same stream. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    FILE *log = fopen("log", argc > 1 ? argv[1] : "w+");
    char line[64];
    if (!log) return 8;
    fputs("once\n", log);
    if (!fork()) return 0;
    wait(NULL);
    fputs("parent\n", log);
    rewind(log);
    while (fgets(line, sizeof line, log)) fputs(line, stdout);
    return 0;
}
