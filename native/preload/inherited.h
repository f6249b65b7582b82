/* inherited.h: which pending stdio bytes are this process's own, and which came with fork. */
#ifndef WEIR_INHERITED_H
#define WEIR_INHERITED_H

/* Begins to keep account, if exec-flush is asked for. */
void inherited_start(void);
/* Before exec: writes out the process's own pending bytes; nothing in a vfork child, nothing inherited. */
void inherited_flush(void);
#endif
