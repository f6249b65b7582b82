#include <stdio.h>
#include <unistd.h>

int main(void)
{
    FILE *store = fopen("store.db", "w");

    if (!store)
        return 1;
    for (int i = 0; i < 400; i++)
        fprintf(store, "%08d %-100s\n", i, "a record of the import");
    if (fflush(store) || fsync(fileno(store)))
        return 1;
    return fclose(store) != 0;
}
