/* directory.h: the working directory of the current process. */
#ifndef WEIR_DIRECTORY_H
#define WEIR_DIRECTORY_H

#include "maps.h"

enum directory_change {
    DIRECTORY_SAME,
    DIRECTORY_REPORTED,
    DIRECTORY_LOST, /* it has changed, and the ring buffer was full */
};

/* Emits the working directory if it differs from that of the process's last directory_event. Returns enum
 * directory_change. */
#ifdef BEFORE_6_1
int report_current_directory(void);
#define report_directory(process) report_current_directory()
#else
int report_directory(struct process_state *process);
#endif

#endif
