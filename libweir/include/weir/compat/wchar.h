/* weir/compat/wchar.h: the wide functions without a FILE (wprintf, putwchar) use libweir's standard streams also in a C file
 * that does not include <stdio.h>. */
#include_next <wchar.h>
#if !defined(WEIR_STDIO_H) && !defined(__cplusplus) && !defined(__need_mbstate_t) && !defined(__need_wint_t)
#include "../stdio.h"
#endif
