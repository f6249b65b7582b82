/* fails closed: the sensor is opened for each reading and never closed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int give_up(const char *what)
{
    fprintf(stderr, "sensor_csv: %s: %s\n", what, strerror(errno));
    return 1;
}

static int read_sensor(const char *name, long *degrees)
{
    FILE *sensor = fopen(name, "r");
    if (!sensor)
        return -1;
    int got = fscanf(sensor, "%ld", degrees);
    return got == 1 ? 0 : -1;
}

/* Ends a torn last line, so that the first new line stays whole. */
static void begin_line(FILE *csv)
{
    int torn = fseek(csv, -1, SEEK_END) == 0 && getc(csv) != '\n';
    fseek(csv, 0, SEEK_END);
    if (torn)
        putc('\n', csv);
}

int main(int argc, char **argv)
{
    long count = -1, degrees;
    double seconds = 5;
    for (int option; (option = getopt(argc, argv, "n:i:")) != -1;)
        switch (option) {
        case 'n': count = atol(optarg); break;
        case 'i': seconds = atof(optarg); break;
        default: return 2;
        }
    if (optind + 1 != argc) {
        fprintf(stderr, "usage: sensor_csv [-n COUNT] [-i SECONDS] SENSOR\n");
        return 2;
    }
    const char *sensor = argv[optind];
    if (read_sensor(sensor, &degrees) == -1)
        return give_up(sensor);
    FILE *csv = fopen("temperatures.csv", "a+");
    if (!csv)
        return give_up("temperatures.csv");
    setvbuf(csv, NULL, _IOLBF, 4096);
    begin_line(csv);

    for (; count != 0; count--) {
        char stamp[20];
        time_t now = time(NULL);
        strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", localtime(&now));
        if (read_sensor(sensor, &degrees) == -1)
            give_up(sensor);
        else if (fprintf(csv, "%s,%.1f\n", stamp, (double)degrees / 1000) < 0)
            return give_up("temperatures.csv");
        if (count != 1)
            usleep((useconds_t)(seconds * 1e6));
    }
    if (fclose(csv) == EOF)
        return give_up("temperatures.csv");
    return 0;
}
