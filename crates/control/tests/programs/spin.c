/* spin.c: writes 100 bytes one by one, then computes for ever without a system call. */
#include <unistd.h>

int main(void) {
    for (int i = 0; i < 100; i++)
        if (write(1, "x", 1) != 1) return 1;
    for (volatile unsigned long i = 0;; i++) continue;
}
