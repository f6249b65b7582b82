/* Reads letters and prints three counts: runs of one letter whose length is no multiple of 9,999; letters whose bytes, in
 * blocks of 8,192, end in a block of 476 that also ends a run of other than whole records (a writer whose 100 records arrive
 * as one run has no torn end); and whole records of 9,999. */
#include <stdio.h>

int main(void)
{
    long runs = 0, length = 0, total[256] = {0}, last[256] = {0}, ends = 0, whole = 0;
    int before = EOF, now;
    do {
        now = getchar_unlocked();
        if (now != before && before != EOF) {
            runs += length % 9999 != 0;
            whole += length % 9999 == 0 ? length / 9999 : 0;
            last[before] = length;
            length = 0;
        }
        length++;
        if (now != EOF)
            total[now]++;
        before = now;
    } while (now != EOF);
    for (int letter = 0; letter < 256; letter++)
        ends += total[letter] > 0 && total[letter] % 8192 == 476 && last[letter] % 8192 == 476 && last[letter] % 9999 != 0;
    printf("%ld %ld %ld\n", runs, ends, whole);
    return 0;
}
