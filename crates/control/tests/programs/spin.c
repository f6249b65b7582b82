/* Writes 100 bytes one by one, then computes without system calls until it is killed. */
#include <unistd.h>

int main(void) {
    for (int i = 0; i < 100; i++)
        if (write(1, "x", 1) != 1) return 1;
    for (volatile unsigned long i = 0;; i++) continue;
}
