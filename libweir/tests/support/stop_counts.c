/* stop_counts.c: counts stops and finds the combinations that had none. */
#include "stop_counts.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "stopping_kernel.h"

static unsigned stops_of[STOPPING_CALLS][2][STOP_COUNTS_EVENTS], stops;

void stop_counts_note(const char *call, bool after, int event)
{
    stops++;
    for (int i = 0; i < STOPPING_CALLS && call; i++)
        stops_of[i][after][event] += strcmp(stopping_calls[i], call) == 0;
}

void stop_counts_check(int events, bool required)
{
    check_begin("combinations of calls, before and after, and events");
    int made = 0;
    for (int i = 0; i < STOPPING_CALLS; i++) {
        unsigned least = UINT32_MAX, all = 0;
        for (int k = 0; k < 2 * events; k++) {
            unsigned of = stops_of[i][k % 2][k / 2];
            least = of < least ? of : least;
            all += of;
            made += of > 0;
        }
        check(!required || least > 0, "%s: %u stops, %u for some event", stopping_calls[i], all, least);
        printf("%-12s %6u stops, %u or more for each event\n", stopping_calls[i], all, least);
    }
    printf("%d of %d combinations, in %u runs\n", made, STOPPING_CALLS * 2 * events, stops);
}
