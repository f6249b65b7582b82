#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { HEADER = 4096, PAGE = 4096 };

int main(void)
{
    char page[PAGE];
    int pages = open("pages", O_WRONLY | O_DSYNC);

    if (pages < 0)
        return 1;
    for (int i = 0; i < 300; i++) {
        memset(page, 'a' + i % 26, sizeof page);
        if (pwrite(pages, page, PAGE, HEADER + (i * 7 % 300) * (off_t)PAGE) != PAGE)
            return 1;
    }
    return close(pages) != 0;
}
