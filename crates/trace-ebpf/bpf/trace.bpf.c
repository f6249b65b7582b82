/* trace.bpf.c: the programs that `weir trace` loads into the kernel, at tracepoints. */
#include "calls.h"
#include "lives.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
