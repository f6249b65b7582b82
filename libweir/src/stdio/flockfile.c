/* flockfile.c: several calls of one thread in a row. */
#include "stdio_private.h"

void weir_stdio_flockfile(weir_stream *s) { weir_lock(s); }
int weir_stdio_ftrylockfile(weir_stream *s) { return weir_trylock(s) == 0 ? 0 : -1; }
void weir_stdio_funlockfile(weir_stream *s) { weir_unlock(s); }
