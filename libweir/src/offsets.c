/* offsets.c: the offsets at which weir reads and changes a stream of another process (crates/walkers). A change of one of
 * them needs a new WEIR__PRIVATE_LAYOUT, and the same offset there. */
#include "private.h"

#include <stddef.h>

#define STATE_AT(field, at) _Static_assert(offsetof(struct weir__state, field) == (at), "WEIR__PRIVATE_LAYOUT")
#define CONFIG_AT(field, at) _Static_assert(offsetof(struct weir__config, field) == (at), "WEIR__PRIVATE_LAYOUT")

#if UINTPTR_MAX > UINT32_MAX
STATE_AT(lock, 128);
STATE_AT(error, 156);
STATE_AT(pos, 176);
STATE_AT(stats.written_bytes, 320);
CONFIG_AT(fd, 56);
CONFIG_AT(lock_file, 76);
CONFIG_AT(layout, 79);
CONFIG_AT(mode, 80);
CONFIG_AT(separator, 96);
CONFIG_AT(spill, 208);
CONFIG_AT(direct, 224);
CONFIG_AT(uring, 232);
#endif
