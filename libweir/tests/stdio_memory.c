/* stdio_memory.c: fmemopen, open_memstream and fopencookie of the C library and of weir/stdio.h have the same results
 * and the same bytes. Where the C library differs from POSIX, POSIX is tested. */
#include "stdio/random.h"

#define SIDE(name) libc_##name
#include "stdio/memory_operations.h"
#undef SIDE

#include <weir/stdio.h>

#define SIDE(name) weir_side_##name
#include "stdio/memory_operations.h"

#include "stdio/check.h"

typedef void (*operations)(uint64_t number, char *to);

static void compare(const char *test, operations libc, operations weir, uint64_t sequences)
{
    static char left[65536], right[65536];
    begin(test);
    for (uint64_t i = 0; i < sequences && counts.wrong < 3; i++) {
        libc(i, left);
        weir(i, right);
        if (!expect_text(right, left))
            dprintf(counts.out, "  in sequence %llu\n", (unsigned long long)i);
    }
}

static void test_fixed(void)
{
    char memory[8] = "";
    begin("fmemopen");
    errno = 0;
    expect(fmemopen(memory, 8, "z") == NULL);
    expect_equal(errno, EINVAL);
    FILE *f = fmemopen(NULL, 100, "w+");
    expect_equal(fputs("allocated memory.", f), 1);
    rewind(f);
    char text[32];
    expect(fgets(text, sizeof text, f) == text);
    expect_text(text, "allocated memory.");
    errno = 0;
    expect_equal(fileno(f), -1);
    expect_equal(errno, EBADF);
    expect_equal(fclose(f), 0);
    f = fmemopen(memory, 4, "w");
    setbuf(f, NULL);
    expect_equal(fputs("abc", f), 1);
    expect_text(memory, "abc");
    errno = 0;
    expect_equal(fputs("def", f), EOF);
    expect_equal(errno, ENOSPC);
    fclose(f);
    f = fmemopen((char[]){"12 34"}, 5, "r");
    int a = 0, b = 0;
    expect_equal(fscanf(f, "%d%d", &a, &b), 2);
    expect(a == 12 && b == 34 && getc(f) == EOF);
    fclose(f);
}

static void test_growing(void)
{
    char *memory;
    size_t bytes;
    begin("open_memstream");
    FILE *f = open_memstream(&memory, &bytes);
    expect_equal(fflush(f), 0);
    expect_equal(bytes, 0);
    expect_text(memory, "");
    fputs("0123456789", f);
    expect_equal(fflush(f), 0);
    expect_text(memory, "0123456789");
    fseek(f, 4, SEEK_SET);
    fputs("x", f);
    expect_equal(fflush(f), 0);
    expect_equal(bytes, 5); /* the smaller of the position and the length */
    expect_text(memory, "0123x56789");
    fseek(f, 12, SEEK_SET);
    fputs("y", f);
    expect_equal(getc(f), EOF);
    expect_equal(fclose(f), 0);
    expect_equal(bytes, 13);
    expect(memcmp(memory, "0123x56789\0\0y", 14) == 0);
    free(memory);
    f = open_memstream(&memory, &bytes);
    for (int i = 0; i < 100000; i++)
        fprintf(f, "%05d", i % 100000);
    expect_equal(fclose(f), 0);
    expect_equal(bytes, 500000);
    expect_equal(strlen(memory), 500000);
    expect(memcmp(memory + 499995, "99999", 6) == 0);
    free(memory);
    errno = 0;
    expect(open_memstream(NULL, &bytes) == NULL);
    expect_equal(errno, EINVAL);
}

static void test_cookies_without(void)
{
    begin("fopencookie without functions");
    cookie_io_functions_t none = {0};
    FILE *f = fopencookie(NULL, "w+", none);
    expect_equal(fputs("discarded.", f), 1);
    expect_equal(fflush(f), 0);
    expect_equal(fclose(f), 0);
    f = fopencookie(NULL, "r", none);
    expect_equal(getc(f), EOF);
    expect(feof(f) && !ferror(f));
    expect_equal(fclose(f), 0);
}

int main(void)
{
#if defined(__GLIBC__)
    compare("fmemopen, compared", libc_fixed, weir_side_fixed, 20000);
#else
    (void)libc_fixed;
    (void)weir_side_fixed;
    skip("fmemopen, compared", "where POSIX leaves the behaviour open, weir/stdio.h follows glibc");
#endif
    compare("open_memstream, compared", libc_growing, weir_side_growing, 5000);
    compare("fopencookie, compared", libc_cookies, weir_side_cookies, 5000);
    test_fixed();
    test_growing();
    test_cookies_without();
    return finish("stdio_memory");
}
