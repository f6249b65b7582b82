/* Four processes append 1,000 records of 100 bytes each to one file. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    for (int writer = 0; writer < 4; writer++)
        if (fork() == 0) {
            FILE *log = fopen("log", "a");
            if (!log)
                return 1;
            setvbuf(log, NULL, _IOLBF, 0);
            for (int record = 0; record < 1000; record++) {
                fprintf(log, "writer %d record %04d %078d\n", writer, record, 0);
                if (record % 100 == 0)
                    usleep(1000); /* other work */
            }
            return 0;
        }
    while (wait(NULL) > 0)
        ;
    return 0;
}
