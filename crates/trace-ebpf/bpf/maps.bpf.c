/* maps.bpf.c: the definitions of what maps.h declares. */
#include "maps.h"

struct process_map processes SEC(".maps");
struct stream_map streams SEC(".maps");
struct wait_map waits SEC(".maps");
struct last_write_map last_writes SEC(".maps");
struct library_map libraries SEC(".maps");
struct event_map events SEC(".maps");
struct scratch_map scratch_spaces SEC(".maps");
struct tally_map tallies SEC(".maps");
struct thread_scratch_map thread_scratch_spaces SEC(".maps");
struct sampling_map sampling SEC(".maps");

const volatile u64 event_bytes;
const volatile u8 classes[SYSCALL_NUMBERS];
const volatile u32 preemptible;
const volatile u32 pauses_by_flag;

char LICENSE[] SEC("license") = "Dual MIT/GPL";
