/* Reads letters and prints three counts: runs of one letter whose length is no multiple of 9,999; letters whose bytes, in
 * blocks of 8,192, end in a block of 476 that also ends a run of other than whole records (a writer whose 100 records arrive
 * as one run has no torn end); and records that arrive in one piece: the bytes 9,999 n to 9,999 n + 9,998 of one letter,
 * without another letter between them. */
#include <stdio.h>

enum { RECORD = 9999 };

int main(void)
{
    long runs = 0, length = 0, total[256] = {0}, begin[256] = {0}, last[256] = {0}, ends = 0, whole = 0, at = 0;
    int before = EOF, now;
    do {
        now = getchar_unlocked();
        if (now != before && before != EOF) {
            runs += length % RECORD != 0;
            last[before] = length;
            length = 0;
        }
        length++;
        if (now != EOF) {
            if (total[now] % RECORD == 0)
                begin[now] = at;
            total[now]++;
            whole += total[now] % RECORD == 0 && at - begin[now] == RECORD - 1;
        }
        at++;
        before = now;
    } while (now != EOF);
    for (int letter = 0; letter < 256; letter++)
        ends += total[letter] > 0 && total[letter] % 8192 == 476 && last[letter] % 8192 == 476 && last[letter] % RECORD != 0;
    printf("%ld %ld %ld\n", runs, ends, whole);
    return 0;
}
