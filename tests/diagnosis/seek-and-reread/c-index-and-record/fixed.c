#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    char entry[17] = "", record[17] = "";
    long sum = 0;
    FILE *index = fopen("table", "r"), *table = fopen("table", "r");

    if (!index || !table)
        return 1;
    fseek(table, 100001 * 16L, SEEK_SET);
    for (int i = 0; i < 300000; i++) { /* one stream for each part: neither has to seek */
        if (fread(entry, 1, 16, index) != 16)
            return 1;
        if (fread(record, 1, 16, table) != 16)
            return 1;
        sum += atol(record);
    }
    printf("%ld\n", sum);
    return 0;
}
