#include <stdio.h>
#include <string.h>

int main(void)
{
    static char image[1 << 16];

    setvbuf(stdout, NULL, _IONBF, 0); /* the pieces are large */
    for (int i = 0; i < 2500; i++) {
        memset(image, 'a' + i % 26, sizeof image);
        if (fwrite(image, sizeof image, 1, stdout) != 1)
            return 1;
    }
    return 0;
}
