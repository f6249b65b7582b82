/* kill_watch.h: looks at the files of a process that was stopped, and judges what a SIGKILL there leaves. */
#ifndef WEIR_TESTS_KILL_WATCH_H
#define WEIR_TESTS_KILL_WATCH_H

#include "kill_plan.h"

/* The stream's files are "spill" and "sink" in the test's directory. */
struct watch {
    struct plan plan;
    struct plan_progress *progress;
    int pipe[2], sink_fd;
    char spill_path[256];
    char *mapped; /* the spill file, if there was one at the last stop */
    size_t mapped_bytes;
    ino_t mapped_ino;
    uint64_t steps, states, in_flight, kills; /* instructions; different states; recoveries */
    bool recovering;        /* the owner is dead; stopped is who recovers what it left */
    size_t before_recovery, may_repeat; /* what the pipe's reader had then; of the flight */
    /* As it was at the last stop: */
    size_t begun, done;
    bool flies; /* a write was about to begin, or had ended */
    char sink[PLAN_IMAGE];
    size_t sink_bytes;
    char spill[65536];
    size_t spill_bytes;
};

void watch_forget(struct watch *w); /* all of the last run; makes a new sink, open until watch_end */
void watch_end(struct watch *w);
bool watch_look(struct watch *w);   /* true: something has changed */
void watch_judge(struct watch *w);

#endif /* WEIR_TESTS_KILL_WATCH_H */
