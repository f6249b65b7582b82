/* A worker reports through stdio and with write(2): the latter arrives first. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void *work(void *report)
{
    static const char line[] = "calibration: none\n";

    fprintf(report, "measured: %d of %d\n", 17, 17);
    if (write(fileno(report), line, strlen(line)) < 0)
        perror("write");
    fprintf(report, "done\n");
    return NULL;
}

int main(void)
{
    FILE *report = fopen("report.txt", "w");
    pthread_t worker;

    if (!report || pthread_create(&worker, NULL, work, report))
        return 1;
    pthread_join(worker, NULL);
    return fclose(report) != 0;
}
