/* format_percent_n.c: weir__vformat refuses every form of %n with -EINVAL and stores nothing; text that only resembles
 * %n is printed. */
#include <wchar.h>

#include "format_check.h"

static int64_t target[2]; /* the second is 0, so that the first also works as a string */

/* Passes the target's address as every argument, so that a store by any conversion shows. */
static ssize_t format_with_target(const char *format)
{
    char to[256];
    int64_t *t = target;
    return weir_format(to, sizeof to, format, t, t, t, t, t, t, t, t);
}

static void refused(const char *format)
{
    target[0] = INT64_C(0x5a5a5a5a5a5a5a5a);
    ssize_t result = format_with_target(format);
    expect(result == -EINVAL, "\"%s\": %zd", format, result);
    expect(target[0] == INT64_C(0x5a5a5a5a5a5a5a5a) && target[1] == 0, "\"%s\": stored", format);
}

static void plain(void)
{
    static const char *const sizes[] = {"", "hh", "h", "l", "ll", "j", "z", "t", "L", "q", "Z"};
    static const char *const fields[] = {
        "", "5", "*", ".", ".3", ".*", "5.3", "*.*", "-", "+", " ", "#", "0", "-08", "'", "I", "-+ #0'I",
        "1$", "2$5", "1$*2$", "1$-*2$.*3$", "01$", "1$'",
    };
    static const char *const before[] = {"", "%d ", "%% ", "text ", "%1$d", "%'d", "%m", "%s%%", "%5%", "%y"};
    static const char *const after[] = {"", " %d", "%n", "n", " 100%"};
    char format[128];
    begin("%n with every field, size and neighbour");
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        for (size_t j = 0; j < sizeof fields / sizeof *fields; j++)
            for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
                for (size_t l = 0; l < sizeof after / sizeof *after; l++) {
                    snprintf(format, sizeof format, "%s%%%s%sn%s", before[i], fields[j], sizes[k], after[l]);
                    refused(format);
                }
}

/* Formats at which a parser fails that consumes one '%' more than the C library. */
static void after_mistakes(void)
{
    static const char *const formats[] = {
        "%h-%n", "%l-%n", "%-h-%n", "%5-%n", "%.-%n", "%hl%n", "%lh%n", "%hhh%n", "%ll%n", "%5%%n",
        "%-%%n", "%.5%n", "%y%n", "%1$y%n", "%$%n", "%1$$%n", "%*%n", "%*$%n", "%1$%%n", "%w8n", "%wf8n",
        "%w64n", "%wf64%n", "%w%n", "%\xc3\xbc%n", "%\x01%n", "%k%n%n", "%'%n", "%I%n", "%l%%n", "%L%n",
        "%.%%n", "%h%%%n", "%#%%%n", "%1$%n", "%'d%%%n", "%m%%%%%n", "%1$n", "%9$n", "%1$hhn", "%1$*1$n",
        "%m%n", "%'d%n", "%C%n", "%S%-n", "%Ld%n", "%qn", "%Zn", "%00000000001$n", "%1$.2$n", "%1$.*2$n",
        "%1$-.5ln",
    };
    begin("%n after mistakes and extensions");
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        refused(formats[i]);
}

static void printed(const char *format, const char *want)
{
    char to[256];
    ssize_t bytes = weir_format(to, sizeof to, format, 7, 8, 9);
    bool right = bytes == (ssize_t)strlen(want) && memcmp(to, want, (size_t)bytes) == 0;
    expect(right, "\"%s\": %zd \"%.*s\"", format, bytes, bytes < 0 ? 0 : (int)bytes, to);
}

static void similar_texts(void)
{
    begin("text that only resembles %n");
    printed("%%n", "%n");
    printed("%%%dn", "%7n");
    printed("%dn%%n", "7n%n");
    printed("50%% now", "50% now");
    printed("%1$d%%n", "7%n");
    printed("%1$d 50%% now%%ln", "7 50% now%ln");
    printed("%2$d%1$dn%%%%n", "87n%%n");
}

/* Formats of random pieces, one of them a %n with which the C library would store. */
static void in_random_formats(uint64_t rounds)
{
    static const char *const pieces[] = {
        "%d", "%5x", "%%", "n", "%c", "text", "%-3lu", "%.0f", "%'d", "%i", "%hhx", "%Lu", "%e", "%G",
        "%ju",
    };
    static const char *const stores[] = {"%n", "%ln", "%hhn", "%5n", "%-.3jn", "%zn", "%'n"};
    begin("%n in random formats");
    for (uint64_t i = 0; i < rounds; i++) {
        char format[256] = "";
        for (unsigned j = below(4); j > 0; j--)
            strcat(format, pieces[below(sizeof pieces / sizeof *pieces)]);
        strcat(format, stores[below(sizeof stores / sizeof *stores)]);
        for (unsigned j = below(4); j > 0; j--)
            strcat(format, pieces[below(sizeof pieces / sizeof *pieces)]);
        refused(format);
    }
}

int main(int argc, char **argv)
{
    uint64_t rounds = set_up_random(argc, argv, 200000);
    plain();
    after_mistakes();
    similar_texts();
    in_random_formats(rounds);
    return finish("format_percent_n");
}
