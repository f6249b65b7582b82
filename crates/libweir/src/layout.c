/* layout.c: what the compiler makes of the structures that ffi.rs declares again; its tests compare. */
#include <stddef.h>
#include <weir.h>

#define SIZE(type) sizeof(type)
#define AT(type, field) offsetof(type, field)

const size_t weir_rs_layout[] = {
    SIZE(struct weir_options),
    AT(struct weir_options, flags),
    AT(struct weir_options, separator),
    AT(struct weir_options, stale_ms),
    AT(struct weir_options, buffer_bytes),
    AT(struct weir_options, buffer),
    AT(struct weir_options, max_record_bytes),
    AT(struct weir_options, spill),
    AT(struct weir_options, reserved),
    SIZE(struct weir_stats),
    AT(struct weir_stats, pending_bytes),
    AT(struct weir_stats, written_bytes),
    AT(struct weir_stats, writes),
    AT(struct weir_stats, short_writes),
    AT(struct weir_stats, stale_drains),
    AT(struct weir_stats, shared_syncs),
    AT(struct weir_stats, buffer_bytes),
    AT(struct weir_stats, error),
    AT(struct weir_stats, mode),
    AT(struct weir_stats, durability),
    SIZE(struct weir_recovered),
    AT(struct weir_recovered, repeated),
    AT(struct weir_recovered, pid),
    AT(struct weir_recovered, exact),
    AT(struct weir_recovered, path),
};
const size_t weir_rs_layout_count = sizeof weir_rs_layout / sizeof *weir_rs_layout;
const int weir_rs_eof = WEIR_EOF;
