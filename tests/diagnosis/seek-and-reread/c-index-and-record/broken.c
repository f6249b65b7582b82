#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    char entry[17] = "", record[17] = "";
    long sum = 0;
    FILE *table = fopen("table", "r");

    if (!table)
        return 1;
    for (int i = 0; i < 300000; i++) {
        fseek(table, i * 16L, SEEK_SET); /* the index is the file's first third */
        if (fread(entry, 1, 16, table) != 16)
            return 1;
        fseek(table, (300000 + atol(entry)) * 16L, SEEK_SET);
        if (fread(record, 1, 16, table) != 16)
            return 1;
        sum += atol(record);
    }
    printf("%ld\n", sum);
    return 0;
}
