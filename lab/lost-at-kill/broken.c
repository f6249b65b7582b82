/* Prints a hundred records, then gets SIGKILL. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    for (int record = 0; record < 100; record++)
        printf("record %03d\n", record);
    kill(getpid(), SIGKILL); /* like kill -9 or the OOM killer */
    pause();
}
