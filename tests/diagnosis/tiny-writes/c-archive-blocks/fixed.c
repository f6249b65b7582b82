#include <unistd.h>

enum { ROOM = 1 << 16, BLOCK = ROOM };

/* Marks the first byte of each 512, so that it is no plain copy. */
int main(void)
{
    static char room[ROOM];
    ssize_t got;
    while ((got = read(0, room, ROOM)) > 0) {
        for (ssize_t at = 0; at < got; at += 512)
            room[at] ^= 1;
        for (ssize_t at = 0; at < got; at += BLOCK) {
            size_t bytes = got - at < BLOCK ? (size_t)(got - at) : BLOCK;
            if (write(1, room + at, bytes) != (ssize_t)bytes)
                return 1;
        }
    }
    return got != 0;
}
