// The methods of `ParlorHandle`: each is a function of parlor.h on the room of the object.

#include "glue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const struct value *value) {
    return (const char *)value->data;
}

/// A function that fills a buffer.
typedef parlor_result (*fill)(parlor_room room, const struct value *given, void *buffer, size_t capacity, size_t *length);

/// Calls it with a buffer that is large enough.
static parlor_result filled(parlor_room room, const struct value *given, fill fill, enum kind kind, struct value *result) {
    size_t capacity = 1024;
    for (;;) {
        size_t length = 0;
        result->data = malloc(capacity);
        if (!result->data) return PARLOR_TOO_SMALL;
        parlor_result filled = fill(room, given, result->data, capacity, &length);
        if (filled == PARLOR_OK) {
            result->kind = kind;
            result->length = length;
            return filled;
        }
        free(result->data);
        result->data = NULL;
        if (filled != PARLOR_TOO_SMALL) return filled;
        // A text needs one more, for its NUL.
        capacity = length + 1;
    }
}

/// A method whose result is a text or bytes.
#define FILLS(name, kind, call)                                                                                          \
    static parlor_result fill_##name(parlor_room room, const struct value *given, void *to, size_t capacity, size_t *length) { \
        (void)given;                                                                                                     \
        return call;                                                                                                     \
    }                                                                                                                    \
    static parlor_result run_##name(parlor_room *room, const struct value *given, struct value *result) {               \
        return filled(*room, given, fill_##name, kind, result);                                                          \
    }

FILLS(event_json, TEXT, parlor_event_json(room, to, capacity, length))
FILLS(event_bytes, BYTES, parlor_event_bytes(room, to, capacity, length))
FILLS(describe, TEXT, parlor_describe(room, (int32_t)given[0].integer, to, capacity, length))
FILLS(code, TEXT, parlor_code(room, to, capacity, length))
FILLS(invite_link, TEXT, parlor_invite_link(room, to, capacity, length))
FILLS(ticket, TEXT, parlor_ticket(room, to, capacity, length))
FILLS(get_value, TEXT, parlor_get(room, text_of(&given[0]), (int32_t)given[1].integer, to, capacity, length))
FILLS(get_bytes, BYTES, parlor_get_bytes(room, text_of(&given[0]), (int32_t)given[1].integer, to, capacity, length))
FILLS(keys, BYTES, parlor_keys(room, text_of(&given[0]), to, capacity, length))
FILLS(input, TEXT, parlor_input(room, (int32_t)given[0].integer, to, capacity, length))
FILLS(read_component, BYTES,
      parlor_read_component(room, (uint32_t)given[0].integer, (uint8_t)given[1].integer, (int32_t)given[2].integer, to, capacity, length))
FILLS(read_columns, BYTES, parlor_read_columns(room, (uint8_t)given[0].integer, (int32_t)given[1].integer, to, capacity, length))
FILLS(rewind, BYTES, parlor_rewind(room, (int32_t)given[0].integer, (uint8_t)given[1].integer, to, capacity, length, NULL))

static parlor_result fill_entities(parlor_room room, const struct value *given, void *to, size_t capacity, size_t *length) {
    (void)given;
    parlor_result done = parlor_entities(room, to, capacity / sizeof(uint32_t), length);
    *length *= sizeof(uint32_t);
    return done;
}

static parlor_result run_entities(parlor_room *room, const struct value *given, struct value *result) {
    return filled(*room, given, fill_entities, BYTES, result);
}

/// A method that gives no more than whether it was done.
#define DOES(name, call)                                                                                                 \
    static parlor_result run_##name(parlor_room *room, const struct value *given, struct value *result) {               \
        (void)given, (void)result;                                                                                       \
        return call;                                                                                                     \
    }

/// An object has one room at a time.
static parlor_result leave(parlor_room *room) {
    parlor_result left = *room == PARLOR_NO_ROOM ? PARLOR_NONE : parlor_leave(*room);
    *room = PARLOR_NO_ROOM;
    return left;
}

static parlor_result stop(parlor_room *room) {
    parlor_result stopped = parlor_stop(*room);
    *room = PARLOR_NO_ROOM;
    return stopped;
}

DOES(host, (leave(room), parlor_host(text_of(&given[0]), text_of(&given[1]), room)))
DOES(join, (leave(room), parlor_join(text_of(&given[0]), text_of(&given[1]), text_of(&given[2]), room)))
DOES(create_match, (leave(room), parlor_create_match(text_of(&given[0]), text_of(&given[1]), room)))
DOES(resume, (leave(room), parlor_resume(text_of(&given[0]), text_of(&given[1]), text_of(&given[2]), room)))
DOES(leave, leave(room))
DOES(stop, stop(room))
DOES(advance, parlor_advance(*room, given[0].real))
DOES(once, parlor_once(*room, text_of(&given[0]), (uint64_t)given[1].integer))
DOES(send_input, parlor_send_input(*room, text_of(&given[0])))
DOES(set_value, parlor_set(*room, text_of(&given[0]), text_of(&given[1])))
DOES(set_value_for,
     parlor_set_for(*room, (const int32_t *)(const void *)given[0].data, given[0].length / sizeof(int32_t), text_of(&given[1]), text_of(&given[2])))
DOES(set_bytes, parlor_set_bytes(*room, text_of(&given[0]), given[1].data, given[1].length))
DOES(remove_value, parlor_remove(*room, text_of(&given[0])))
DOES(declare, parlor_declare(*room, text_of(&given[0]), text_of(&given[1])))
DOES(set_predicted, parlor_set_predicted(*room, text_of(&given[0]), text_of(&given[1])))
DOES(set_player_data, parlor_set_player_data(*room, (int32_t)given[0].integer, text_of(&given[1]), text_of(&given[2])))
DOES(kick, parlor_kick(*room, (int32_t)given[0].integer, text_of(&given[1])))
DOES(hand_over, parlor_hand_over(*room, (int32_t)given[0].integer))
DOES(send, parlor_send(*room, (int32_t)given[0].integer, (const int32_t *)(const void *)given[1].data, given[1].length / sizeof(int32_t),
                       (int32_t)given[2].integer, (uint32_t)given[3].integer, text_of(&given[4]), text_of(&given[5])))
DOES(send_bytes, parlor_send_bytes(*room, (int32_t)given[0].integer, (const int32_t *)(const void *)given[1].data,
                                   given[1].length / sizeof(int32_t), (uint8_t)given[2].integer, given[3].data, given[3].length))
DOES(send_data, parlor_send_data(*room, (int32_t)given[0].integer, (const int32_t *)(const void *)given[1].data,
                                 given[1].length / sizeof(int32_t), given[2].integer, given[3].integer != 0, given[4].data, given[4].length))
DOES(act, parlor_act(*room, (uint32_t)given[0].integer, text_of(&given[1]), text_of(&given[2])))
DOES(despawn, parlor_despawn(*room, (uint32_t)given[0].integer))
DOES(transfer, parlor_transfer(*room, (uint32_t)given[0].integer, (int32_t)given[1].integer))
DOES(set_zone, parlor_set_zone(*room, (uint32_t)given[0].integer, (uint32_t)given[1].integer))
DOES(write_component,
     parlor_write_component(*room, (uint32_t)given[0].integer, (uint8_t)given[1].integer, given[2].data, given[2].length))
DOES(remove_component, parlor_remove_component(*room, (uint32_t)given[0].integer, (uint8_t)given[1].integer))
DOES(write_columns, parlor_write_columns(*room, (uint8_t)given[0].integer, given[1].data, given[1].length))

/// The next event is read by event_json; this says whether there is one.
static parlor_result run_poll(parlor_room *room, const struct value *given, struct value *result) {
    (void)given, (void)result;
    parlor_event event;
    return parlor_poll(*room, &event);
}

/// A step as JSON.
static parlor_result run_step(parlor_room *room, const struct value *given, struct value *result) {
    (void)given;
    parlor_step_info step;
    parlor_result begun = parlor_step(*room, &step);
    if (begun != PARLOR_OK) return begun;
    char json[96];
    int length = snprintf(json, sizeof json, "{\"tick\":%" PRIu32 ",\"isReplay\":%s,\"isHost\":%s}", step.tick,
                          step.is_replay ? "true" : "false", step.is_host ? "true" : "false");
    result->data = malloc((size_t)length + 1);
    if (!result->data) return PARLOR_TOO_SMALL;
    memcpy(result->data, json, (size_t)length + 1);
    result->kind = TEXT;
    result->length = (size_t)length;
    return begun;
}

static parlor_result give_integer(parlor_result done, int64_t integer, struct value *result) {
    result->kind = done == PARLOR_OK ? INTEGER : NOTHING;
    result->integer = integer;
    return done;
}

/// A method that gives a number of the room's status.
#define STATUS(name, field)                                                                                              \
    static parlor_result run_##name(parlor_room *room, const struct value *given, struct value *result) {               \
        (void)given;                                                                                                     \
        parlor_room_status status;                                                                                       \
        parlor_result done = parlor_status(*room, &status);                                                              \
        return done == PARLOR_OK ? give_integer(done, status.field, result) : done;                                      \
    }

STATUS(flags, flags)
STATUS(me, me)
STATUS(host_id, host)
STATUS(tick_hz, tick_hz)

/// Of the room's status a time in seconds.
static parlor_result run_time(parlor_room *room, const struct value *given, struct value *result) {
    parlor_room_status status;
    parlor_result done = parlor_status(*room, &status);
    if (done != PARLOR_OK) return done;
    const double times[] = {status.server_time, status.ping, status.host_ping};
    if (given[0].integer < 0 || given[0].integer > 2 || times[given[0].integer] < 0) return PARLOR_NONE;
    result->kind = REAL;
    result->real = times[given[0].integer];
    return done;
}

static parlor_result run_component(parlor_room *room, const struct value *given, struct value *result) {
    uint8_t component = 0;
    parlor_result done = parlor_component(*room, text_of(&given[0]), &component);
    return give_integer(done, component, result);
}

static parlor_result run_owner(parlor_room *room, const struct value *given, struct value *result) {
    int32_t owner = PARLOR_NOBODY;
    parlor_result done = parlor_owner(*room, (uint32_t)given[0].integer, &owner);
    return give_integer(done, owner, result);
}

static parlor_result run_spawn(parlor_room *room, const struct value *given, struct value *result) {
    uint32_t entity = 0;
    parlor_result done = parlor_spawn(*room, (int32_t)given[0].integer, &entity);
    return give_integer(done, entity, result);
}

static parlor_result run_input_ack(parlor_room *room, const struct value *given, struct value *result) {
    uint32_t tick = 0;
    parlor_result done = parlor_input_ack(*room, (int32_t)given[0].integer, &tick);
    return give_integer(done, tick, result);
}

#define METHOD(name, arguments) {#name, arguments, run_##name}

const struct method METHODS[] = {
    METHOD(host, "tT"), METHOD(join, "ttT"), METHOD(create_match, "tT"), METHOD(resume, "ttT"),
    METHOD(leave, ""), METHOD(stop, ""), METHOD(poll, ""), METHOD(event_json, ""), METHOD(event_bytes, ""),
    METHOD(step, ""), METHOD(advance, "r"), METHOD(once, "ti"), METHOD(flags, ""), METHOD(me, ""),
    METHOD(host_id, ""), METHOD(tick_hz, ""), METHOD(time, "i"), METHOD(describe, "i"), METHOD(code, ""),
    METHOD(invite_link, ""), METHOD(ticket, ""), METHOD(set_player_data, "itT"), METHOD(kick, "it"),
    METHOD(hand_over, "i"), METHOD(send_input, "t"), METHOD(input, "i"), METHOD(input_ack, "i"),
    METHOD(set_value, "tt"), METHOD(set_value_for, "btt"), METHOD(set_bytes, "tb"), METHOD(get_value, "ti"),
    METHOD(get_bytes, "ti"), METHOD(remove_value, "t"), METHOD(declare, "tt"), METHOD(set_predicted, "tt"),
    METHOD(keys, "t"), METHOD(send, "ibiitt"), METHOD(send_bytes, "ibib"), METHOD(send_data, "ibiib"),
    METHOD(act, "itt"), METHOD(component, "t"), METHOD(entities, ""), METHOD(owner, "i"), METHOD(spawn, "i"),
    METHOD(despawn, "i"), METHOD(transfer, "ii"), METHOD(set_zone, "ii"), METHOD(read_component, "iii"),
    METHOD(write_component, "iib"), METHOD(remove_component, "ii"), METHOD(read_columns, "ii"),
    METHOD(write_columns, "ib"), METHOD(rewind, "ii"),
};
const size_t METHOD_COUNT = sizeof METHODS / sizeof *METHODS;
