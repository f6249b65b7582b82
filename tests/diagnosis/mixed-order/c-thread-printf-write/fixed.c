/* A worker reports through stdio only. */
#include <pthread.h>
#include <stdio.h>

static void *work(void *report)
{
    static const char line[] = "calibration: none\n";

    fprintf(report, "measured: %d of %d\n", 17, 17);
    if (fputs(line, report) < 0)
        perror("fputs");
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
