/* Writes two messages to app.log, the second with a newline or, given an argument, without; then gets SIGKILL. */
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static FILE *log_file;

static void log_message(const char *message)
{
    char stamp[20];
    time_t now = time(NULL);
    strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", localtime(&now));
    fprintf(log_file, "[%s] %s", stamp, message);
}

int main(int argc, char **argv)
{
    log_file = fopen("app.log", "a");
    if (!log_file)
        return 1;
    log_message("the system is started\n");
    sleep(1);
    (void)argv;
    log_message(argc > 1 ? "the sensor does not answer" : "the sensor does not answer\n");
    sleep(1);
    kill(getpid(), SIGKILL);
}
