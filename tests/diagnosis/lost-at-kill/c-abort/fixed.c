#include <assert.h>
#include <stdio.h>

static int check(int level)
{
    printf("level %d reached\n", level);
    assert(level < 40);
    return level + 1;
}

int main(void)
{
    int level = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    while (level < 1000)
        level = check(level);
    return 0;
}
