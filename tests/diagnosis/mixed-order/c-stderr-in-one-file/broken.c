#include <stdio.h>

int main(void)
{
    for (int file = 1; file <= 20; file++) {
        printf("reading file %d\n", file);
        if (file % 7 == 0)
            fprintf(stderr, "warning: it is empty\n");
    }
    return 0;
}
