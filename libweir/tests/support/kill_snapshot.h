/* kill_snapshot.h: snapshots of the files of a stopped process, and a check of what a SIGKILL at that stop leaves. */
#ifndef WEIR_TESTS_KILL_SNAPSHOT_H
#define WEIR_TESTS_KILL_SNAPSHOT_H

#include "kill_plan.h"

/* The stream's files are "spill" and "sink" in the test's directory. */
struct kill_snapshot {
    struct plan plan;
    struct plan_progress *progress;
    int pipe[2], sink_fd;
    char spill_path[256];
    char *mapped; /* the spill file, if it existed at the last stop */
    size_t mapped_bytes;
    ino_t mapped_ino;
    /* Counts of executed instructions, different states, states with a write in flight, and checked recoveries: */
    uint64_t steps, states, flights, kills;
    bool recovering;        /* the owner is dead, and the stopped process recovers its files */
    size_t before_recovery; /* bytes that the pipe's reader had when the owner died */
    size_t repeat_max;      /* bytes that were in flight then, which a recovery may repeat */
    /* At the last stop: */
    size_t begun, done;
    bool write_in_flight; /* about to begin, or ended and not yet recorded */
    char sink[PLAN_IMAGE];
    size_t sink_bytes;
    char spill[65536];
    size_t spill_bytes;
};

/* Clears the results of the last run and makes a new sink, which stays open until snapshot_close. */
void snapshot_reset(struct kill_snapshot *snap);
void snapshot_close(struct kill_snapshot *snap);
/* Reads the files. Returns true if anything changed since the last stop. */
bool snapshot_update(struct kill_snapshot *snap);
/* Recovers copies of the files and checks the result. */
void snapshot_check(struct kill_snapshot *snap);

#endif /* WEIR_TESTS_KILL_SNAPSHOT_H */
