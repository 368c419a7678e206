// What the C programs of the tests have in common.

#include "parlor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(condition)                                                                                         \
    do {                                                                                                         \
        if (!(condition)) {                                                                                      \
            fprintf(stderr, "%s:%d: not so: %s; last error: %s\n", __FILE__, __LINE__, #condition,              \
                    parlor_last_error_message());                                                                \
            exit(EXIT_FAILURE);                                                                                  \
        }                                                                                                        \
    } while (0)

/// Seconds that only a fault takes.
static const double PATIENCE = 30;

static inline double seconds(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/// The next event of a kind; those before it are dropped. The other room is polled meanwhile, and both run their steps.
static inline parlor_event wait_for(parlor_room room, parlor_room other, parlor_event_kind kind) {
    double began = seconds();
    for (;;) {
        parlor_event event;
        while (parlor_poll(room, &event) == PARLOR_OK) {
            if (event.kind == kind) return event;
            if (event.kind == PARLOR_EVENT_CLOSED) {
                char why[1024] = "";
                parlor_event_json(room, why, sizeof why, NULL);
                fprintf(stderr, "no event %d, but %s\n", (int)kind, why);
                exit(EXIT_FAILURE);
            }
        }
        while (parlor_step(room, NULL) == PARLOR_OK) {}
        if (other != PARLOR_NO_ROOM) {
            while (parlor_poll(other, &event) == PARLOR_OK) {}
            while (parlor_step(other, NULL) == PARLOR_OK) {}
        }
        if (seconds() - began > PATIENCE) {
            fprintf(stderr, "no event %d came\n", (int)kind);
            exit(EXIT_FAILURE);
        }
    }
}
