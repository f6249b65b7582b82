/* sensor_csv.c: appends a line `2025-07-22T10:30:00,25.5` to temperatures.csv every few seconds.
 *
 * The strategy: each line goes to the kernel at once, in one write(2).
 *   - One small write in five seconds costs nothing measurable; a buffer would save nothing.
 *   - A buffer of 4096 bytes would hold over 150 lines: a kill would lose up to 13 minutes of readings.
 *     Line by line, a kill loses none.
 *   - The kernel writes dirty pages to the device after up to 30 seconds. A power loss loses these lines and
 *     may leave the last one incomplete; the next start begins a new line after it.
 *   - --sync writes each line to the device (fdatasync(2)) before the next reading: a power loss loses none.
 *     It is not the default: on an SD card each line wears a whole flash block and may take long.
 *   - O_APPEND: a second logger, or a program that truncates the file, does no harm. */
#include <fcntl.h>
#include <getopt.h>

#include "example.h"

#define USAGE "[-n COUNT] [-i SECONDS] [-o FILE] [--sync] SENSOR|--simulate\n" \
    "  SENSOR is a file with thousandths of a degree, such as /sys/class/thermal/thermal_zone0/temp;\n" \
    "  --simulate: no sensor; -n: stop after COUNT lines; -i: interval (5); -o: FILE (temperatures.csv)"

struct job {
    const char *sensor; /* NULL: simulated values */
    const char *name;
    uint64_t count;
    int64_t interval;
    enum weir_durability durability;
};

/* Sets *degrees. Returns 0 or -errno. Reopens the file for each reading: sysfs reads the sensor at the
 * first read. */
static int read_sensor(const char *sensor, double *degrees)
{
    weir_stream *s;
    char text[32] = "", *end;
    int result = weir_open(&s, sensor, O_RDONLY, NULL);
    if (result < 0)
        return result;
    ssize_t bytes = weir_read(s, text, sizeof text - 1);
    result = weir_close(s);
    if (bytes < 0 || result < 0)
        return bytes < 0 ? (int)bytes : result;
    long value = strtol(text, &end, 10);
    if (end == text || (*end && *end != '\n'))
        return -EILSEQ;
    *degrees = (double)value / 1000;
    return 0;
}

/* Returns a simulated room temperature. */
static double simulate(void)
{
    static double degrees = 25.5;
    degrees += (double)(random() % 5 - 2) / 10;
    if (degrees < 15 || degrees > 35)
        degrees = 25.5;
    return degrees;
}

/* Ends an incomplete last line left by a power loss. */
static int64_t end_incomplete_line(weir_stream *csv)
{
    int64_t end = weir_seek(csv, 0, SEEK_END);
    if (end <= 0)
        return end == -ESPIPE ? 0 : end;
    int64_t at = weir_seek(csv, -1, SEEK_END);
    int last = at < 0 ? (int)at : weir_getc(csv);
    return last >= 0 && last != '\n' ? weir_putc(csv, '\n') : last;
}

static weir_stream *open_csv(const struct job *job)
{
    weir_stream *csv;
    struct weir_options options = { .mode = WEIR_LINE, .durability = job->durability };
    check(weir_open(&csv, job->name, O_RDWR | O_CREAT | O_APPEND, &options), job->name);
    check(end_incomplete_line(csv), job->name);
    return csv;
}

/* Returns the number of failed readings. Sensors fail occasionally: the line is omitted and the logger
 * continues. */
static uint64_t record(const struct job *job, weir_stream *csv)
{
    char time[20];
    uint64_t failed = 0;
    int64_t next = now();
    for (uint64_t i = 0; i < job->count; i++) {
        double degrees = 0;
        sleep_until(next);
        next += job->interval;
        int result = job->sensor ? read_sensor(job->sensor, &degrees) : (degrees = simulate(), 0);
        if (result < 0) {
            print_error(job->sensor, -result);
            failed++;
            continue;
        }
        check(weir_printf(csv, "%s,%.1f\n", timestamp(time), degrees), job->name);
    }
    return failed;
}

static struct job parse(int argc, char **argv)
{
    static const struct option names[] = { { "sync", 0, NULL, 's' }, { "simulate", 0, NULL, 'm' }, { 0 } };
    struct job job = { NULL, "temperatures.csv", UINT64_MAX, 5 * SECOND, WEIR_KERNEL };
    int simulate = 0;
    for (int option; (option = getopt_long(argc, argv, "n:i:o:", names, NULL)) != -1;)
        switch (option) {
        case 'n': job.count = number_argument(optarg, UINT64_MAX, USAGE); break;
        case 'i': job.interval = seconds_argument(optarg, USAGE); break;
        case 'o': job.name = optarg; break;
        case 's': job.durability = WEIR_DATA; break;
        case 'm': simulate = 1; break;
        default: usage(USAGE, NULL, NULL);
        }
    if (argc - optind != !simulate)
        usage(USAGE, NULL, NULL);
    job.sensor = argv[optind]; /* argv ends with NULL */
    return job;
}

int main(int argc, char **argv)
{
    struct job job = parse(argc, argv);
    double first;
    if (!job.sensor)
        weir_put_str(weir_stderr(), "sensor_csv: no sensor: the values are simulated\n");
    else
        check(read_sensor(job.sensor, &first), job.sensor); /* reports a wrong name at once */
    weir_stream *csv = open_csv(&job);
    uint64_t failed = record(&job, csv);
    check(weir_close(csv), job.name);
    return failed > 0;
}
