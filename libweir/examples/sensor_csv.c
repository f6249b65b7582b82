/* sensor_csv.c: every few seconds a line `2025-07-22T10:30:00,25.5` into temperatures.csv.
 *
 * The strategy: every line goes to the kernel at once, in one write(2).
 *   - One small write in five seconds costs nothing that could be noticed; a buffer would save nothing.
 *   - A buffer of 4096 bytes would hold over 150 lines: a kill would take up to 13 minutes of readings along.
 *     So, line by line, a kill takes none.
 *   - The kernel keeps written lines for up to half a minute before it writes them to the device. A power cut
 *     takes these, and may leave the last one torn; the next start begins a new line behind a torn one.
 *   - --sync puts each line on the device (fdatasync(2)) before the next is read: a power cut takes none. It
 *     is not the default, because on an SD card it wears a whole flash block for 25 bytes and may take long.
 *   - O_APPEND: a second logger, or one who empties the file, does no harm.
 */
#include <fcntl.h>
#include <getopt.h>

#include "example.h"

#define USAGE "[-n COUNT] [-i SECONDS] [-o FILE] [--sync] SENSOR|--simulate\n" \
    "  SENSOR is a file with thousandths of a degree, such as /sys/class/thermal/thermal_zone0/temp;\n" \
    "  --simulate makes the values up; -n: stop after COUNT lines; -i: not 5 s; -o: not temperatures.csv"

struct job {
    const char *sensor; /* NULL: values are made up */
    const char *name;
    uint64_t count;
    int64_t interval;
    enum weir_durability durability;
};

/* Sets *degrees; 0 or -errno. The file is opened anew each time: sysfs reads the sensor at the first read. */
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

/* Wanders a little about room temperature. */
static double made_up(void)
{
    static double degrees = 25.5;
    degrees += (double)(random() % 5 - 2) / 10;
    if (degrees < 15 || degrees > 35)
        degrees = 25.5;
    return degrees;
}

/* A torn last line, left by a power cut, must not swallow the first new one. */
static int64_t begin_line(weir_stream *csv)
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
    check(begin_line(csv), job->name);
    return csv;
}

/* How many readings failed. Sensors do, now and then; the logger goes on, and leaves the line out. */
static uint64_t record(const struct job *job, weir_stream *csv)
{
    char time[20];
    uint64_t failed = 0;
    int64_t next = now();
    for (uint64_t i = 0; i < job->count; i++) {
        double degrees = 0;
        sleep_until(next);
        next += job->interval;
        int result = job->sensor ? read_sensor(job->sensor, &degrees) : (degrees = made_up(), 0);
        if (result < 0) {
            complain(job->sensor, -result);
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
    job.sensor = argv[optind]; /* NULL behind the last argument */
    return job;
}

int main(int argc, char **argv)
{
    struct job job = parse(argc, argv);
    double first;
    if (!job.sensor)
        weir_put_str(weir_stderr(), "sensor_csv: no sensor is read: the values are made up\n");
    else
        check(read_sensor(job.sensor, &first), job.sensor); /* a wrong name is told at once */
    weir_stream *csv = open_csv(&job);
    uint64_t failed = record(&job, csv);
    check(weir_close(csv), job.name);
    return failed > 0;
}
