#include <ctype.h>
#include <unistd.h>

int main(void)
{
    char block[65536];
    ssize_t got;

    while ((got = read(0, block, sizeof block)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            char c = (char)toupper((unsigned char)block[i]);
            if (write(1, &c, 1) != 1)
                return 1;
        }
    }
    return got < 0;
}
