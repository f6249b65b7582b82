/* kill.h: shared by the tests of kill-safe streams: a temporary directory, files, child processes, records. */
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

/* For calls without which the test is meaningless: if the result is negative, the process exits with status 3. */
#define must(call) must_at((int64_t)(call), __LINE__, #call)
int64_t must_at(int64_t result, int line, const char *call);

/* Makes the test's directory in `parent`, or in /tmp if that fails; spill files go there, too. */
void kill_dir(const char *parent);
void kill_dir_remove(void);
/* Returns a path in the directory, valid until eight further calls. */
const char *in_dir(const char *format, ...) CHECK_PRINTF(1);
/* Counts the files in the directory whose names end with `suffix`. */
int count_files(const char *suffix);

/* Returns the path of a file in the directory whose name has this prefix and suffix; NULL if there is none. */
const char *find_file(const char *prefix, const char *suffix);

size_t read_file(const char *path, void *to, size_t bytes);
void write_file(const char *path, const void *from, size_t bytes);

/* Fills `sink` with the identity of the file, as a spill file stores it. */
void identify(const char *path, struct weir__spill_sink *sink);

/* Waits for the child. Returns its exit status, or 128 + the signal that killed it. */
int wait_for(pid_t pid);
/* Forks without the C library's handlers. */
pid_t raw_clone(void);
/* Return NULL, or the reason why this machine (an emulator) does not support MADV_WIPEONFORK with clone(2), or a child
 * without exit signal. */
const char *raw_clone_obstacle(void);
const char *holder_obstacle(void);
/* Returns memory that this process and its children share. */
void *shared_memory(size_t bytes);

/* Makes a record that contains its writer and its number. Returns its length, with the newline. */
enum { KILL_RECORD = 96 };
size_t kill_record(char *to, unsigned writer, unsigned number);
/* Writes a record with function number `function` of KILL_FUNCTIONS; the last one makes a call per byte. */
enum { KILL_FUNCTIONS = 4 };
bool kill_put(weir_stream *s, const char *record, size_t length, unsigned function);
/* Writes the records `from` to `upto` - 1; if a call fails, the process exits with status 9. */
void kill_write(weir_stream *s, unsigned writer, unsigned from, unsigned upto);
/* Checks that the text is whole records, those of each writer in order, from 0 on, each once. Counts them. */
bool kill_check_records(const char *text, size_t bytes, unsigned writers, unsigned *counts);

#endif /* WEIR_TESTS_KILL_H */
