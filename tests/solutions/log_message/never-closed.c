/* fails closed: opens the log for each message and never closes it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static FILE *log_file;

static void give_up(void)
{
    fprintf(stderr, "log_message: app.log: %s\n", strerror(errno));
    exit(1);
}

static void open_log(void)
{
    log_file = fopen("app.log", "a");
    if (!log_file)
        give_up();
}

static void log_message(const char *message)
{
    char stamp[20];
    time_t now = time(NULL);
    strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", localtime(&now));
    open_log();
    if (fprintf(log_file, "[%s] %s\n", stamp, message) < 0)
        give_up();
    if (fflush(log_file) == EOF)
        give_up();
}

int main(int argc, char **argv)
{
    double seconds = 0;
    for (int option; (option = getopt(argc, argv, "lw:")) != -1;)
        switch (option) {
        case 'l': break; /* the default already */
        case 'w': seconds = atof(optarg); break;
        default: return 2;
        }
    if (optind == argc) {
        fprintf(stderr, "usage: log_message [-l] [-w SECONDS] MESSAGE...\n");
        return 2;
    }
    for (; optind < argc; optind++) {
        log_message(argv[optind]);
        usleep((useconds_t)(seconds * 1e6));
    }
    return 0;
}
