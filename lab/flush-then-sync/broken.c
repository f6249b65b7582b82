/* Saves a record and tries to make it durable. */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
    FILE *file = fopen("data", "w");
    struct stat now;
    if (!file)
        return 1;
    fprintf(file, "record\n");
    fsync(fileno(file));
    fstat(fileno(file), &now);
    printf("%ld %ld\n", 7 - (long)now.st_size, (long)now.st_size);
    fflush(stdout);
    kill(getpid(), SIGKILL);
    fflush(file);
    return 0;
}
