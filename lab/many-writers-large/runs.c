/* Reads letters; says how many runs of one letter are no multiple of 9,999, how many letters' bytes, taken in blocks of
 * 8,192 from their beginning, end in a block of 476 that is the end of a run, and how many records of 9,999 are whole. */
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
        ends += total[letter] > 0 && total[letter] % 8192 == 476 && last[letter] % 8192 == 476;
    printf("%ld %ld %ld\n", runs, ends, whole);
    return 0;
}
