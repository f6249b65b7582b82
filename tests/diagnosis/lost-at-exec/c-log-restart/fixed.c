#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    FILE *log = fopen("service.log", "a");

    if (!log)
        return 1;
    if (argc > 1) {
        fprintf(log, "second life begins\n");
        return fclose(log) != 0;
    }
    for (int i = 0; i < 20; i++)
        fprintf(log, "option %d read\n", i);
    fprintf(log, "restarting\n");
    fclose(log);
    char *again[] = {argv[0], "restarted", NULL};
    execv("/proc/self/exe", again);
    return 127;
}
