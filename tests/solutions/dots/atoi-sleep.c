/* fails pace, one-by-one, usage: atoi returns 0 for 0.1 and for "many", so that it does not wait. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 10, seconds = argc > 2 ? atoi(argv[2]) : 1;
    setbuf(stdout, NULL);
    for (int dot = 0; dot < count; dot++) {
        if (putchar('.') == EOF) {
            perror("dots");
            return 1;
        }
        sleep(seconds);
    }
    putchar('\n');
    return 0;
}
