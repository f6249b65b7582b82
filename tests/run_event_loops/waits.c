/*
 * waits ROUNDS MILLISECONDS: prints a line, waits, and so on, as an event loop with a timer does. Each wait is a raw epoll_wait(2) of 1 to
 * MILLISECONDS ms. Counts to standard error the changed argument registers, the waits that ended early or with another
 * result than 0, and the lines that were in the file at the end of their wait.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

static double now_ms(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	int rounds = atoi(argv[1]), most = atoi(argv[argc - 1]);
	int changed = 0, early = 0, failed = 0, in_time = 0;
	long epoll = epoll_create1(0), printed = 0;
	for (int i = 0; i < rounds; i++) {
		struct epoll_event events[4];
		struct stat file;
		long ms = most - i * 37 % most;
		printed += printf("line %d\n", i);
		double begun = now_ms();
		long result = SYS_epoll_wait;
		register long timeout __asm__("r10") = ms;
		__asm__ volatile("syscall"
				 : "+a"(result), "+r"(timeout)
				 : "D"(epoll), "S"(events), "d"(4L)
				 : "rcx", "r11", "memory");
		long after = timeout;
		early += now_ms() - begun < ms;
		changed += after != ms;
		failed += result != 0;
		in_time += fstat(1, &file) == 0 && file.st_size == printed;
	}
	fprintf(stderr, "changed %d early %d failed %d in time %d\n", changed, early, failed, in_time);
	return 0;
}
