/* weir/stdio_names.h: maps the names of <stdio.h> to libweir. Part of weir/stdio.h; do not include it
 * directly. */
#ifndef WEIR_STDIO_NAMES_H
#define WEIR_STDIO_NAMES_H

#include "stdio.h"

/* Object-like macros, so that members and variables of the program with these names are renamed
 * consistently. */
/* types and streams */
#undef FILE
#undef stdin
#undef stdout
#undef stderr
#define FILE weir_stream
#define stdin (*weir_stdio_variable(0))
#define stdout (*weir_stdio_variable(1))
#define stderr (*weir_stdio_variable(2))

/* C11 */
#undef fopen
#undef freopen
#undef tmpfile
#undef fclose
#undef fflush
#undef setvbuf
#undef setbuf
#undef fgetc
#undef getc
#undef getchar
#undef ungetc
#undef fgets
#undef fread
#undef scanf
#undef vscanf
#undef fscanf
#undef vfscanf
#undef fputc
#undef putc
#undef putchar
#undef fputs
#undef puts
#undef fwrite
#undef printf
#undef vprintf
#undef fprintf
#undef vfprintf
#undef perror
#undef fseek
#undef ftell
#undef rewind
#undef fgetpos
#undef fsetpos
#undef feof
#undef ferror
#undef clearerr
#define fopen weir_stdio_fopen
#define freopen weir_stdio_freopen
#define tmpfile weir_stdio_tmpfile
#define fclose weir_stdio_fclose
#define fflush weir_stdio_fflush
#define setvbuf weir_stdio_setvbuf
#define setbuf weir_stdio_setbuf
#define fgetc weir_stdio_getc
#define getc weir_stdio_getc
#define getchar weir_stdio_getchar
#define ungetc weir_stdio_ungetc
#define fgets weir_stdio_fgets
#define fread weir_stdio_fread
#define scanf weir_stdio_scanf
#define vscanf weir_stdio_vscanf
#define fscanf weir_stdio_fscanf
#define vfscanf weir_stdio_vfscanf
#define fputc weir_stdio_putc
#define putc weir_stdio_putc
#define putchar weir_stdio_putchar
#define fputs weir_stdio_fputs
#define puts weir_stdio_puts
#define fwrite weir_stdio_fwrite
#define printf weir_stdio_printf
#define vprintf weir_stdio_vprintf
#define fprintf weir_stdio_fprintf
#define vfprintf weir_stdio_vfprintf
#define perror weir_stdio_perror
#define fseek weir_stdio_fseek
#define ftell weir_stdio_ftell
#define rewind weir_stdio_rewind
#define fgetpos weir_stdio_fgetpos
#define fsetpos weir_stdio_fsetpos
#define feof weir_stdio_feof
#define ferror weir_stdio_ferror
#define clearerr weir_stdio_clearerr

/* Names beyond C11 are mapped only if the program's feature-test macros (feature_test_macros(7)) declare
 * them; otherwise they are the program's own. */
#if defined(__GLIBC__) ? defined(__USE_MISC) \
                       : !defined(__STRICT_ANSI__) || defined(_GNU_SOURCE) || defined(_BSD_SOURCE)
#define WEIR_STDIO_LEVEL 3
#elif defined(__GLIBC__) ? defined(__USE_XOPEN2K8) : defined(_POSIX_C_SOURCE) || defined(_XOPEN_SOURCE)
#define WEIR_STDIO_LEVEL 2
#elif defined(__GLIBC__) && defined(__USE_POSIX)
#define WEIR_STDIO_LEVEL 1
#else
#define WEIR_STDIO_LEVEL 0
#endif

#if WEIR_STDIO_LEVEL >= 1
/* POSIX */
#undef fdopen
#undef popen
#undef pclose
#undef fileno
#undef fseeko
#undef ftello
#undef flockfile
#undef ftrylockfile
#undef funlockfile
#undef getc_unlocked
#undef getchar_unlocked
#undef putc_unlocked
#undef putchar_unlocked
#define fdopen weir_stdio_fdopen
#define popen weir_stdio_popen
#define pclose weir_stdio_pclose
#define fileno weir_stdio_fileno
#define fseeko weir_stdio_fseeko
#define ftello weir_stdio_ftello
#define flockfile weir_stdio_flockfile
#define ftrylockfile weir_stdio_ftrylockfile
#define funlockfile weir_stdio_funlockfile
#define getc_unlocked weir_stdio_getc_unlocked
#define getchar_unlocked weir_stdio_getchar_unlocked
#define putc_unlocked weir_stdio_putc_unlocked
#define putchar_unlocked weir_stdio_putchar_unlocked

#endif

#if WEIR_STDIO_LEVEL >= 2
/* POSIX.1-2008 */
#undef fmemopen
#undef open_memstream
#define fmemopen weir_stdio_fmemopen
#define open_memstream weir_stdio_open_memstream

#ifdef __cplusplus /* functions, because a macro would also rename std::getline */
WEIR_INLINE ssize_t getline(char **line, size_t *room, weir_stream *s)
{
    return weir_stdio_getline(line, room, s);
}
WEIR_INLINE ssize_t getdelim(char **line, size_t *room, int delimiter, weir_stream *s)
{
    return weir_stdio_getdelim(line, room, delimiter, s);
}
#else
#undef getline
#undef getdelim
#define getline weir_stdio_getline
#define getdelim weir_stdio_getdelim
#endif
#endif

#if WEIR_STDIO_LEVEL >= 3
/* BSD, SVID and GNU */
#undef setbuffer
#undef setlinebuf
#undef getw
#undef putw
#undef fgetc_unlocked
#undef fputc_unlocked
#undef fgets_unlocked
#undef fread_unlocked
#undef fputs_unlocked
#undef fwrite_unlocked
#undef fflush_unlocked
#undef feof_unlocked
#undef ferror_unlocked
#undef clearerr_unlocked
#undef fileno_unlocked
#undef fopencookie
#undef fopen64
#undef freopen64
#undef tmpfile64
#undef fseeko64
#undef ftello64
#define setbuffer weir_stdio_setbuffer
#define setlinebuf weir_stdio_setlinebuf
#define getw weir_stdio_getw
#define putw weir_stdio_putw
#define fgetc_unlocked weir_stdio_getc_unlocked
#define fputc_unlocked weir_stdio_putc_unlocked
#define fgets_unlocked weir_stdio_fgets
#define fread_unlocked weir_stdio_fread
#define fputs_unlocked weir_stdio_fputs
#define fwrite_unlocked weir_stdio_fwrite
#define fflush_unlocked weir_stdio_fflush
#define feof_unlocked weir_stdio_feof
#define ferror_unlocked weir_stdio_ferror
#define clearerr_unlocked weir_stdio_clearerr
#define fileno_unlocked weir_stdio_fileno
#define fopencookie weir_stdio_fopencookie
#define fopen64 weir_stdio_fopen
#define freopen64 weir_stdio_freopen
#define tmpfile64 weir_stdio_tmpfile
#define fseeko64 weir_stdio_fseeko
#define ftello64 weir_stdio_ftello

#undef fgetpos64
#undef fsetpos64
#undef fcloseall
#define fgetpos64(s, position) weir_stdio_fgetpos(s, (fpos_t *)(void *)(position))
#define fsetpos64(s, position) weir_stdio_fsetpos(s, (const fpos_t *)(const void *)(position))
#define fcloseall() weir_stdio_fflush(NULL)
#endif

/* stdio_ext(3) */
#undef _flushlbf
#undef __fpurge
#undef __fpending
#undef __fbufsize
#undef __freadable
#undef __fwritable
#undef __freading
#undef __fwriting
#undef __flbf
#undef __fsetlocking
#define _flushlbf weir_stdio_flushlbf
#define __fpurge weir_stdio_fpurge
#define __fpending weir_stdio_fpending
#define __fbufsize weir_stdio_fbufsize
#define __freadable weir_stdio_freadable
#define __fwritable weir_stdio_fwritable
#define __freading weir_stdio_freading
#define __fwriting weir_stdio_fwriting
#define __flbf weir_stdio_flbf
#define __fsetlocking weir_stdio_fsetlocking
#undef __freadahead
#undef __freadptr
#undef __freadptrinc
#undef __fseterr
#define __freadahead weir_stdio_freadahead
#define __freadptr weir_stdio_freadptr
#define __freadptrinc weir_stdio_freadptrinc
#define __fseterr weir_stdio_fseterr

/* from wchar.h */
#undef fwide
#undef fgetwc
#undef getwc
#undef getwchar
#undef fputwc
#undef putwc
#undef putwchar
#undef ungetwc
#undef fgetws
#undef fputws
#undef wprintf
#undef fwprintf
#undef vwprintf
#undef vfwprintf
#undef wscanf
#undef fwscanf
#undef vwscanf
#undef vfwscanf
#define fwide weir_stdio_fwide
#define fgetwc weir_stdio_fgetwc
#define getwc weir_stdio_fgetwc
#define getwchar weir_stdio_getwchar
#define fputwc weir_stdio_fputwc
#define putwc weir_stdio_fputwc
#define putwchar weir_stdio_putwchar
#define ungetwc weir_stdio_ungetwc
#define fgetws weir_stdio_fgetws
#define fputws weir_stdio_fputws
#define wprintf weir_stdio_wprintf
#define fwprintf weir_stdio_fwprintf
#define vwprintf weir_stdio_vwprintf
#define vfwprintf weir_stdio_vfwprintf
#define wscanf weir_stdio_wscanf
#define fwscanf weir_stdio_fwscanf
#define vwscanf weir_stdio_vwscanf
#define vfwscanf weir_stdio_vfwscanf
#if WEIR_STDIO_LEVEL >= 2
#undef open_wmemstream
#define open_wmemstream weir_stdio_open_wmemstream
#endif
#if WEIR_STDIO_LEVEL >= 3
#undef getwc_unlocked
#undef fgetwc_unlocked
#undef getwchar_unlocked
#undef putwc_unlocked
#undef fputwc_unlocked
#undef putwchar_unlocked
#undef fgetws_unlocked
#undef fputws_unlocked
#define getwc_unlocked weir_stdio_fgetwc
#define fgetwc_unlocked weir_stdio_fgetwc
#define getwchar_unlocked weir_stdio_getwchar
#define putwc_unlocked weir_stdio_fputwc
#define fputwc_unlocked weir_stdio_fputwc
#define putwchar_unlocked weir_stdio_putwchar
#define fgetws_unlocked weir_stdio_fgetws
#define fputws_unlocked weir_stdio_fputws
#endif

#ifdef __cplusplus /* std::printf and others; inline ones such as std::putchar included */
namespace std
{
using ::weir_stream;
using ::weir_stdio_fopen;
using ::weir_stdio_freopen;
using ::weir_stdio_tmpfile;
using ::weir_stdio_fclose;
using ::weir_stdio_fflush;
using ::weir_stdio_setvbuf;
using ::weir_stdio_setbuf;
using ::weir_stdio_getc;
using ::weir_stdio_ungetc;
using ::weir_stdio_fgets;
using ::weir_stdio_fread;
using ::weir_stdio_scanf;
using ::weir_stdio_vscanf;
using ::weir_stdio_fscanf;
using ::weir_stdio_vfscanf;
using ::weir_stdio_putc;
using ::weir_stdio_fputs;
using ::weir_stdio_puts;
using ::weir_stdio_fwrite;
using ::weir_stdio_printf;
using ::weir_stdio_vprintf;
using ::weir_stdio_fprintf;
using ::weir_stdio_vfprintf;
using ::weir_stdio_perror;
using ::weir_stdio_fseek;
using ::weir_stdio_ftell;
using ::weir_stdio_rewind;
using ::weir_stdio_fgetpos;
using ::weir_stdio_fsetpos;
using ::weir_stdio_feof;
using ::weir_stdio_ferror;
using ::weir_stdio_clearerr;
using ::weir_stdio_putchar;
using ::weir_stdio_getchar;
using ::weir_stdio_fwide;
using ::weir_stdio_fgetwc;
using ::weir_stdio_fputwc;
using ::weir_stdio_ungetwc;
using ::weir_stdio_fgetws;
using ::weir_stdio_fputws;
using ::weir_stdio_wprintf;
using ::weir_stdio_vwprintf;
using ::weir_stdio_fwprintf;
using ::weir_stdio_vfwprintf;
using ::weir_stdio_wscanf;
using ::weir_stdio_vwscanf;
using ::weir_stdio_fwscanf;
using ::weir_stdio_vfwscanf;
using ::weir_stdio_getwchar;
using ::weir_stdio_putwchar;
} /* namespace std */
#endif

#endif /* WEIR_STDIO_NAMES_H */
