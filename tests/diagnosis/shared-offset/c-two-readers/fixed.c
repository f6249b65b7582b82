#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int look_up(int table, int first)
{
    char record[1025] = "";
    int wrong = 0;

    for (int i = first; i < 1000; i += 2) {
        int key = (int)((i * 7919LL) % 2000);
        usleep(100); /* in place of other work */
        if (pread(table, record, 1024, key * 1024L) != 1024 || atoi(record) != key)
            wrong++;
    }
    return wrong;
}

int main(void)
{
    int table = open("table", O_RDONLY);
    pid_t child = fork();

    int wrong = look_up(table, child == 0);
    printf("%s: %d wrong\n", child ? "parent" : "child", wrong);
    if (child)
        waitpid(child, NULL, 0);
    return 0;
}
