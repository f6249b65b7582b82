/* Four processes write 200 records of 6,000 bytes each into the pipe that is standard output. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WRITERS = 4, RECORDS = 200, RECORD = 6000 };

int main(void)
{
    for (int writer = 0; writer < WRITERS; writer++)
        if (fork() == 0) {
            char record[RECORD];
            memset(record, 'a' + writer, sizeof record);
            record[RECORD - 1] = '\n';
            for (int number = 0; number < RECORDS; number++)
                if (write(STDOUT_FILENO, record, sizeof record) < 0)
                    _exit(1);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    return 0;
}
