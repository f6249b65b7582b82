#include <stdio.h>

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int file = 1; file <= 20; file++) {
        printf("reading file %d\n", file);
        if (file % 7 == 0)
            fprintf(stderr, "warning: it is empty\n");
    }
    return 0;
}
