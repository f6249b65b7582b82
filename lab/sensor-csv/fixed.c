/* Logs a line "2025-07-22T10:30:00,25.5" for each reading of a sensor: three readings, then SIGKILL as a power loss. */
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static double read_sensor(void)
{
    static double degrees = 25.0;
    return degrees += 0.5; /* simulates the sensor */
}

int main(void)
{
    FILE *csv = fopen("temperatures.csv", "a");
    if (!csv)
        return 1;
    setvbuf(csv, NULL, _IOLBF, 0); /* writes each line when it is complete */
    for (int reading = 0; reading < 3; reading++) {
        char stamp[20];
        time_t now = time(NULL);
        strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", localtime(&now));
        fprintf(csv, "%s,%.1f\n", stamp, read_sensor());
        usleep(300000); /* 5 s in real use */
    }
    sleep(1);
    kill(getpid(), SIGKILL);
}
