// What a game does wrong: each call is refused with what it was, and changes nothing.

#include "check.h"

#include <pthread.h>
#include <stdint.h>

static parlor_room room;

/// Whether a call was refused for an argument, with a text that has these words.
static void refused(parlor_result result, const char *words) {
    CHECK(result == PARLOR_INVALID);
    if (!strstr(parlor_last_error_message(), words)) {
        fprintf(stderr, "%s does not say: %s\n", parlor_last_error_message(), words);
        exit(EXIT_FAILURE);
    }
}

static void wrong_options(void) {
    parlor_room none = 7;
    refused(parlor_host(NULL, NULL, &none), "app: it is NULL");
    CHECK(none == PARLOR_NO_ROOM);
    refused(parlor_host("tests", NULL, NULL), "room: it is NULL");
    refused(parlor_host("tests", "{", &none), "options: it is no JSON");
    refused(parlor_host("tests", "[]", &none), "expected a map, found a list");
    refused(parlor_host("tests", "{\"maxPlayer\":4}", &none), "maxPlayer: there is no option of this name");
    refused(parlor_host("tests", "{\"maxPlayers\":\"4\"}", &none), "maxPlayers: expected a whole number");
    refused(parlor_host("tests", "{\"tickHz\":1000}", &none), "tickHz: it may be 1 to 240");
    refused(parlor_host("tests", "{\"transport\":\"tcp\"}", &none), "\"websocket\"");
    refused(parlor_host("tests", "{\"schema\":{\"components\":[{\"name\":\"a\",\"fields\":[{\"name\":\"b\",\"kind\":\"c\"}]}]}}", &none),
            "schema.components[0].fields[0].kind");
    refused(parlor_host("\xff", NULL, &none), "app: it is no UTF-8");
    refused(parlor_host("tests", "{\"own\":{}}", &none), "own: own states");
    refused(parlor_join("tests", "K7QM", "{\"maxPlayers\":4}", &none), "maxPlayers");
    refused(parlor_resume("tests", "no ticket", NULL, &none), "ticket");
    CHECK(parlor_join("tests", "?", NULL, &none) < PARLOR_OK && none == PARLOR_NO_ROOM);
    CHECK(parlor_host("tests", "{\"maxPlayers\":1000}", &none) < PARLOR_OK && none == PARLOR_NO_ROOM);
}

static void wrong_pointers(void) {
    char text[8];
    unsigned char component;
    size_t length = 99;
    parlor_event event;
    refused(parlor_poll(room, NULL), "event: it is NULL");
    refused(parlor_status(room, NULL), "status: it is NULL");
    refused(parlor_set(room, NULL, "1"), "key: it is NULL");
    refused(parlor_set(room, "a", NULL), "value: it is NULL");
    refused(parlor_set(room, "a", "{1}"), "value: it is no JSON");
    refused(parlor_set(room, "a", "18446744073709551616e999"), "value: it is no JSON");
    refused(parlor_set_bytes(room, "a", NULL, 3), "data: it is NULL");
    refused(parlor_set_bytes(room, "a", (const unsigned char *)"", SIZE_MAX), "more than there is memory");
    refused(parlor_set_for(room, (int[]){-5}, 1, "a", "1"), "a member is a number of at least 0");
    refused(parlor_set_for(room, (const int *)(const void *)((const char *)&event + 1), 1, "a", "1"), "not aligned");
    refused(parlor_get(room, "a", 9, text, sizeof text, NULL), "9 is no parlor_view");
    refused(parlor_send(room, 9, NULL, 0, 0, 0, "a", "1"), "9 is no parlor_recipient");
    refused(parlor_send(room, PARLOR_TO_ALL, NULL, 0, 9, 0, "a", "1"), "9 is no parlor_lane");
    refused(parlor_send(room, PARLOR_TO_ALL, NULL, 0, 0, 9, "a", "1"), "flags");
    refused(parlor_send(room, PARLOR_TO_ALL, (int[]){1}, 1, 0, 0, "a", "1"), "members");
    refused(parlor_describe(room, -1, text, sizeof text, NULL), "-1 is no parlor_topic");
    refused(parlor_advance(room, -1), "seconds");
    refused(parlor_component(room, NULL, &component), "name: it is NULL");
    refused(parlor_read_component(room, 0, 0, PARLOR_PREDICTED, NULL, 0, NULL), "view");
    refused(parlor_json_number("{", "", &(double){0}), "json: it is no JSON");
    CHECK(parlor_keys(room, "", NULL, 0, &length) == PARLOR_OK && length == 0);
    CHECK(parlor_advance(room, 0) == PARLOR_OK);
}

static void wrong_sizes(void) {
    char text[4] = "abc";
    unsigned char row[3] = {0};
    size_t length = 0;
    unsigned entity;
    unsigned char component;
    CHECK(parlor_set(room, "a", "\"hello\"") == PARLOR_OK);
    CHECK(parlor_get(room, "a", PARLOR_LATEST, text, sizeof text, &length) == PARLOR_TOO_SMALL);
    CHECK(length == 7 && strcmp(text, "abc") == 0);
    // A text needs a place for its NUL.
    char *exact = malloc(length + 1);
    CHECK(parlor_get(room, "a", PARLOR_LATEST, exact, length, NULL) == PARLOR_TOO_SMALL);
    CHECK(parlor_get(room, "a", PARLOR_LATEST, exact, length + 1, NULL) == PARLOR_OK && strcmp(exact, "\"hello\"") == 0);
    free(exact);
    CHECK(parlor_get(room, "a", PARLOR_LATEST, NULL, 0, &length) == PARLOR_TOO_SMALL && length == 7);
    refused(parlor_get(room, "a", PARLOR_LATEST, NULL, 100, &length), "buffer: it is NULL");
    CHECK(parlor_component(room, "tank", &component) == PARLOR_OK && parlor_spawn(room, PARLOR_NOBODY, &entity) == PARLOR_OK);
    refused(parlor_spawn(room, 0, NULL), "entity: it is NULL");
    refused(parlor_write_component(room, entity, component, row, sizeof row), "shorter than its component");
    double long_row[3] = {0};
    refused(parlor_write_component(room, entity, component, (const unsigned char *)long_row, sizeof long_row), "longer");
    refused(parlor_write_columns(room, component, (const unsigned char *)"\xff\xff\xff\xff\0\0\0", 8), "shorter");
    CHECK(parlor_read_component(room, entity, component, PARLOR_LATEST, row, 3, &length) == PARLOR_NONE);
    CHECK(parlor_read_component(room, entity + 1, component, PARLOR_LATEST, row, 3, &length) == PARLOR_REFUSED);
    CHECK(parlor_component(room, "plane", &component) == PARLOR_REFUSED);
    CHECK(strcmp(parlor_last_error_code(), "no_such_component") == 0);
    char big[128 * 1024];
    memset(big, ' ', sizeof big);
    big[0] = big[sizeof big - 2] = '"';
    big[sizeof big - 1] = 0;
    CHECK(parlor_set(room, "b", big) == PARLOR_REFUSED && parlor_get(room, "b", PARLOR_LATEST, NULL, 0, NULL) == PARLOR_NONE);
}

static void *leave(void *results) {
    *(parlor_result *)results = parlor_leave(room);
    return NULL;
}

/// Several threads leave one room, and it is used after that.
static void use_after_leaving(void) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    parlor_result results[THREADS];
    int left = 0;
    parlor_event event;
    char text[8];
    for (int at = 0; at < THREADS; at++) CHECK(pthread_create(&threads[at], NULL, leave, &results[at]) == 0);
    for (int at = 0; at < THREADS; at++) {
        CHECK(pthread_join(threads[at], NULL) == 0);
        CHECK(results[at] == PARLOR_OK || results[at] == PARLOR_NO_SUCH_ROOM);
        left += results[at] == PARLOR_OK;
    }
    CHECK(left == 1);
    CHECK(parlor_poll(room, &event) == PARLOR_NO_SUCH_ROOM && parlor_step(room, NULL) == PARLOR_NO_SUCH_ROOM);
    CHECK(parlor_set(room, "a", "1") == PARLOR_NO_SUCH_ROOM && strcmp(parlor_last_error_code(), "no_such_room") == 0);
    // Another room does not answer to the handle of the one before it.
    parlor_room next;
    CHECK(parlor_host("tests", NULL, &next) == PARLOR_OK && next != room);
    CHECK(parlor_code(room, text, sizeof text, NULL) == PARLOR_NO_SUCH_ROOM);
    CHECK(parlor_leave(next) == PARLOR_OK && parlor_leave(next) == PARLOR_NO_SUCH_ROOM);
    parlor_room none[] = {PARLOR_NO_ROOM, 1, UINT64_MAX, room + 1};
    for (size_t at = 0; at < sizeof none / sizeof *none; at++) CHECK(parlor_poll(none[at], &event) == PARLOR_NO_SUCH_ROOM);
}

int main(void) {
    CHECK(strcmp(parlor_last_error_message(), "") == 0);
    wrong_options();
    CHECK(parlor_host("tests",
                      "{\"schema\":{\"components\":[{\"name\":\"tank\",\"fields\":"
                      "[{\"name\":\"at\",\"kind\":\"vec2\",\"min\":-9,\"max\":9,\"step\":0.5}]}]}}",
                      &room) == PARLOR_OK);
    // Before it is open there is nothing to write to.
    CHECK(parlor_set(room, "a", "1") == PARLOR_REFUSED && strcmp(parlor_last_error_code(), "not_open") == 0);
    wait_for(room, PARLOR_NO_ROOM, PARLOR_EVENT_OPEN);
    wrong_pointers();
    wrong_sizes();
    use_after_leaving();
    return EXIT_SUCCESS;
}
