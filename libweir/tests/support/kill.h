/* kill.h: what the tests of kill-safe streams share: a directory of their own, files, children. */
#ifndef WEIR_TESTS_KILL_H
#define WEIR_TESTS_KILL_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/spill.h"
#include "check.h"

/* A call that must work for the test to mean anything; else the process ends with status 3. */
#define must(call) must_at((int64_t)(call), __LINE__, #call)
int64_t must_at(int64_t result, int line, const char *call);

/* Makes a directory, where spill files go as well, or goes to `parent` for it; it is removed at the end. */
void kill_dir(const char *parent);
void kill_dir_remove(void);
/* A path in it, in a buffer of its own for each of a few calls. */
const char *in_dir(const char *format, ...) CHECK_PRINTF(1);
int count_files(const char *suffix); /* in it */

/* The first file in it with such a name; NULL: there is none. */
const char *find_file(const char *prefix, const char *suffix);

size_t read_file(const char *path, void *to, size_t bytes);
void write_file(const char *path, const void *from, size_t bytes);

/* Makes the file the sink that a spill file speaks of. */
void identify(const char *path, struct weir__spill_sink *sink);

/* The status as a shell gives it. */
int wait_for(pid_t pid);
pid_t raw_clone(void); /* as fork(2), without the C library's handlers */
/* NULL, or why this machine (an emulator) cannot do what these things need. */
const char *raw_clone_obstacle(void); /* memory that a child finds wiped */
const char *holder_obstacle(void);    /* a child of which wait(2) knows nothing */
/* Memory that children share. */
void *shared_memory(size_t bytes);

/* A record that tells its writer and its number. Returns its length, with the newline. */
enum { KILL_RECORD = 96 };
size_t kill_record(char *to, unsigned writer, unsigned number);
/* In one of KILL_WAYS; the last of them takes several calls. */
enum { KILL_WAYS = 4 };
bool kill_put(weir_stream *s, const char *record, size_t length, unsigned way);
/* Records `from` to `upto`; a call that fails ends the process with status 9. */
void kill_write(weir_stream *s, unsigned writer, unsigned from, unsigned upto);
/* Are these whole records, those of each writer in order, from 0 on, each once? Counts them. */
bool kill_check_records(const char *text, size_t bytes, unsigned writers, unsigned *counts);

#endif /* WEIR_TESTS_KILL_H */
