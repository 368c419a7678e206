// A host and a guest in one process: keyed state, inputs, messages, a world, players and a match.

#include "check.h"

#include <math.h>

static const char SCHEMA[] =
    "{\"maxPlayers\":4,\"tickHz\":60,\"name\":\"Ada\",\"channels\":{\"32\":\"ordered\"},\"schema\":{\"components\":["
    "{\"name\":\"tank\",\"fields\":[{\"name\":\"at\",\"kind\":\"vec2\",\"min\":-256,\"max\":256,\"step\":0.001953125},"
    "{\"name\":\"gear\",\"kind\":\"int\",\"min\":0,\"max\":7}]},"
    "{\"name\":\"label\",\"fields\":[{\"name\":\"text\",\"kind\":\"text\",\"bytesMax\":32}]}]}}";

/// The row of the component "tank".
struct tank {
    double x, y, gear;
};

static parlor_room host, guest;

/// Runs frames of both until the guest reads this at a key.
static void wait_for_value(const char *key, const char *json) {
    double began = seconds();
    char read[64] = "";
    do {
        parlor_event event;
        parlor_room rooms[] = {host, guest};
        for (int at = 0; at < 2; at++) {
            while (parlor_poll(rooms[at], &event) == PARLOR_OK) {}
            while (parlor_step(rooms[at], NULL) == PARLOR_OK) {}
        }
        parlor_get(guest, key, PARLOR_LATEST, read, sizeof read, NULL);
        CHECK(seconds() - began < PATIENCE);
    } while (strcmp(read, json) != 0);
}

static void open_rooms(void) {
    char code[64], link[256], name[16];
    size_t count, length;
    parlor_player players[4];
    parlor_room_status status;
    CHECK(parlor_host("tests", SCHEMA, &host) == PARLOR_OK);
    CHECK(parlor_code(host, code, sizeof code, NULL) == PARLOR_NONE);
    CHECK(strcmp(wait_for(host, PARLOR_NO_ROOM, PARLOR_EVENT_OPEN).text, "") != 0);
    CHECK(parlor_code(host, code, sizeof code, &length) == PARLOR_OK && strlen(code) == length);
    CHECK(parlor_invite_link(host, link, sizeof link, NULL) == PARLOR_OK && strstr(link, code));
    CHECK(parlor_join("tests", code, "{\"name\":\"Bob\",\"channels\":{\"32\":\"ordered\"}}", &guest) == PARLOR_OK);
    wait_for(guest, host, PARLOR_EVENT_OPEN);
    // This process comes first among those that are in the room.
    CHECK(strcmp(wait_for(guest, host, PARLOR_EVENT_PLAYER_JOINED).text, "Bob") == 0);
    CHECK(strcmp(wait_for(guest, host, PARLOR_EVENT_PLAYER_JOINED).text, "Ada") == 0);
    CHECK(parlor_players(guest, players, 4, &count) == PARLOR_OK && count == 2);
    CHECK(players[0].flags & PARLOR_PLAYER_IS_HOST && players[1].flags & PARLOR_PLAYER_IS_ME);
    CHECK(players[1].id == 1 && strcmp(players[1].name, "Bob") == 0);
    CHECK(parlor_status(guest, &status) == PARLOR_OK && status.me == 1 && status.host == 0 && status.tick_hz == 60);
    CHECK(status.flags == PARLOR_IS_OPEN && status.players == 2);
    CHECK(parlor_spectators(guest, NULL, 0, &count) == PARLOR_OK && count == 0);
    char json[4096];
    CHECK(parlor_describe(guest, PARLOR_PLAYERS, json, sizeof json, NULL) == PARLOR_OK);
    CHECK(parlor_json_text(json, "/0/name", name, sizeof name, NULL) == PARLOR_OK && strcmp(name, "Ada") == 0);
    for (int topic = PARLOR_INFO; topic <= PARLOR_COMPONENTS; topic++) {
        parlor_result described = parlor_describe(host, topic, json, sizeof json, NULL);
        CHECK(described == PARLOR_OK || topic == PARLOR_WORLD_DIAGNOSTICS);
    }
}

static void use_state(void) {
    char json[128], keys[64];
    unsigned char bytes[8];
    size_t length;
    int for_host[] = {0};
    CHECK(parlor_declare(host, "dot/", "{\"snap\":[\"x\"]}") == PARLOR_OK);
    CHECK(parlor_set_for(host, for_host, 1, "secret", "42") == PARLOR_OK);
    CHECK(parlor_set_bytes(host, "map", (const unsigned char *)"\1\2\3", 3) == PARLOR_OK);
    CHECK(parlor_set(host, "dot/1", "{\"x\":3,\"name\":\"d\\u00f6t\"}") == PARLOR_OK);
    wait_for_value("dot/1", "{\"name\":\"d\xc3\xb6t\",\"x\":3}");
    CHECK(parlor_get(guest, "dot/1", PARLOR_DRAWN, json, sizeof json, NULL) >= PARLOR_OK);
    CHECK(parlor_get(guest, "secret", PARLOR_LATEST, json, sizeof json, NULL) == PARLOR_NONE);
    CHECK(parlor_get(host, "secret", PARLOR_LATEST, json, sizeof json, NULL) == PARLOR_OK);
    CHECK(parlor_get_bytes(guest, "map", PARLOR_LATEST, bytes, sizeof bytes, &length) == PARLOR_OK);
    CHECK(length == 3 && memcmp(bytes, "\1\2\3", 3) == 0);
    CHECK(parlor_get(guest, "map", PARLOR_LATEST, json, sizeof json, NULL) == PARLOR_OK && strcmp(json, "[1,2,3]") == 0);
    CHECK(parlor_get_bytes(guest, "dot/1", PARLOR_LATEST, bytes, sizeof bytes, &length) == PARLOR_REFUSED);
    CHECK(strcmp(parlor_last_error_code(), "value") == 0);
    CHECK(parlor_keys(guest, "", keys, sizeof keys, &length) == PARLOR_OK);
    CHECK(length == 10 && strcmp(keys, "dot/1") == 0 && strcmp(keys + 6, "map") == 0);
    CHECK(parlor_remove(host, "map") == PARLOR_OK && parlor_remove(host, "map") == PARLOR_NONE);
    CHECK(parlor_set(guest, "dot/1", "1") == PARLOR_REFUSED && strcmp(parlor_last_error_code(), "not_host") == 0);
}

static void send_inputs(void) {
    char json[64] = "";
    unsigned char bytes[8];
    size_t length = 0;
    unsigned tick;
    double began = seconds();
    do {
        parlor_event event;
        parlor_step_info step;
        while (parlor_poll(guest, &event) == PARLOR_OK) {}
        while (parlor_step(guest, &step) == PARLOR_OK) {
            CHECK(!step.is_host && parlor_send_input_bytes(guest, (const unsigned char *)"\7", 1) == PARLOR_OK);
        }
        while (parlor_poll(host, &event) == PARLOR_OK) {}
        while (parlor_step(host, &step) == PARLOR_OK) {
            CHECK(step.is_host && parlor_send_input(host, "{\"dx\":1}") == PARLOR_OK);
            CHECK(parlor_input(host, 0, json, sizeof json, NULL) == PARLOR_OK && strcmp(json, "{\"dx\":1}") == 0);
            CHECK(parlor_input_bytes(host, 1, bytes, sizeof bytes, &length) >= PARLOR_OK);
            CHECK(parlor_once(host, "step", step.tick) == PARLOR_OK && parlor_once(host, "step", step.tick) == PARLOR_NONE);
        }
        CHECK(seconds() - began < PATIENCE);
    } while (length == 0);
    CHECK(length == 1 && bytes[0] == 7 && parlor_input_ack(host, 1, &tick) == PARLOR_OK);
}

static void send_messages(void) {
    char json[256];
    unsigned char bytes[8];
    size_t length;
    int to_guest[] = {1};
    CHECK(parlor_send(guest, PARLOR_TO_HOST, NULL, 0, PARLOR_LANE_DEFAULT, PARLOR_SEND_NUMBERED, "chat", "{\"text\":\"hi\"}") == PARLOR_OK);
    parlor_event event = wait_for(host, guest, PARLOR_EVENT_MESSAGE);
    CHECK(event.member == 1 && strcmp(event.text, "chat") == 0 && event.order >= 0);
    CHECK(parlor_event_value(host, json, sizeof json, NULL) == PARLOR_OK && strcmp(json, "{\"text\":\"hi\"}") == 0);
    CHECK(parlor_event_json(host, json, sizeof json, NULL) == PARLOR_OK && strstr(json, "\"type\":\"message\""));
    CHECK(parlor_send(host, PARLOR_TO_MEMBERS, to_guest, 1, PARLOR_LANE_ORDERED, PARLOR_SEND_TIMED, "chat", "[]") == PARLOR_OK);
    event = wait_for(guest, host, PARLOR_EVENT_MESSAGE);
    CHECK(event.order == -1 && parlor_event_json(guest, json, sizeof json, NULL) == PARLOR_OK && strstr(json, "eventTimeMs"));
    CHECK(parlor_send_bytes(host, PARLOR_TO_EXCEPT, (int[]){0}, 1, 32, (const unsigned char *)"abc", 3) == PARLOR_OK);
    event = wait_for(guest, host, PARLOR_EVENT_BYTES);
    CHECK(event.number == 32 && parlor_event_bytes(guest, bytes, sizeof bytes, &length) == PARLOR_OK);
    CHECK(length == 3 && memcmp(bytes, "abc", 3) == 0);
    CHECK(parlor_set_player_data(guest, 1, "ready", "true") == PARLOR_OK);
    event = wait_for(host, guest, PARLOR_EVENT_PLAYER_DATA);
    CHECK(event.member == 1 && strcmp(event.text, "ready") == 0);
    CHECK(parlor_event_value(host, json, sizeof json, NULL) == PARLOR_OK && strcmp(json, "true") == 0);
    CHECK(parlor_set_player_data(guest, 1, "ready", NULL) == PARLOR_OK);
    wait_for(host, guest, PARLOR_EVENT_PLAYER_DATA);
    CHECK(parlor_event_value(host, json, sizeof json, NULL) == PARLOR_NONE);
}

static void use_world(void) {
    unsigned char tank, label, row[64], columns[256];
    size_t count, length;
    unsigned entity, entities[4];
    int owner;
    char json[64];
    struct tank placed = {1.5, -2.25, 3}, read;
    CHECK(parlor_component(host, "tank", &tank) == PARLOR_OK && parlor_component(host, "label", &label) == PARLOR_OK);
    CHECK(parlor_spawn(host, 1, &entity) == PARLOR_OK);
    CHECK(parlor_write_component(host, entity, tank, (const unsigned char *)&placed, sizeof placed) == PARLOR_OK);
    CHECK(parlor_write_component(host, entity, label, (const unsigned char *)"\2\0\0\0ok", 6) == PARLOR_OK);
    CHECK(wait_for(guest, host, PARLOR_EVENT_SPAWNED).entity == entity);
    CHECK(parlor_entities(guest, entities, 4, &count) == PARLOR_OK && count == 1 && entities[0] == entity);
    CHECK(parlor_owner(guest, entity, &owner) == PARLOR_OK && owner == 1);
    CHECK(parlor_read_component(guest, entity, tank, PARLOR_LATEST, (unsigned char *)&read, sizeof read, &length) == PARLOR_OK);
    CHECK(length == sizeof read && read.x == 1.5 && fabs(read.y + 2.25) < 0.01 && read.gear == 3);
    CHECK(parlor_read_component(guest, entity, label, PARLOR_DRAWN, row, sizeof row, &length) == PARLOR_OK);
    CHECK(length == 6 && memcmp(row, "\2\0\0\0ok", 6) == 0);
    CHECK(parlor_read_columns(host, tank, PARLOR_LATEST, columns, sizeof columns, &length) == PARLOR_OK);
    CHECK(length == 8 + 8 + 3 * sizeof(double) && columns[0] == 1);
    CHECK(parlor_write_columns(host, tank, columns, length) == PARLOR_OK);
    CHECK(parlor_act(guest, entity, "fire", "{\"power\":0.5}") == PARLOR_OK);
    parlor_event event = wait_for(host, guest, PARLOR_EVENT_ACTION);
    CHECK(event.member == 1 && event.entity == entity && strcmp(event.text, "fire") == 0);
    CHECK(parlor_event_value(host, json, sizeof json, NULL) == PARLOR_OK && strcmp(json, "{\"power\":0.5}") == 0);
    double back = -1;
    CHECK(parlor_rewind(host, 1, tank, columns, sizeof columns, &length, &back) == PARLOR_OK && back >= 0);
    CHECK(parlor_transfer(host, entity, PARLOR_NOBODY) == PARLOR_OK && parlor_owner(host, entity, &owner) == PARLOR_OK);
    CHECK(owner == PARLOR_NOBODY && parlor_set_zone(host, entity, 0) == PARLOR_OK);
    CHECK(parlor_set_audience(host, entity, NULL, 0) == PARLOR_OK);
    CHECK(parlor_remove_component(host, entity, label) == PARLOR_OK);
    CHECK(parlor_remove_component(host, entity, label) == PARLOR_NONE);
    CHECK(parlor_despawn(host, entity) == PARLOR_OK);
    CHECK(wait_for(guest, host, PARLOR_EVENT_DESPAWNED).entity == entity);
    // A guest writes nothing that is not its own to predict.
    CHECK(parlor_spawn(guest, 1, &entity) == PARLOR_REFUSED && strcmp(parlor_last_error_code(), "not_host") == 0);
}

static void play_match(void) {
    parlor_room first, second;
    unsigned char bytes[8];
    size_t length;
    CHECK(parlor_create_match("tests", "{\"label\":\"c\"}", &first) == PARLOR_OK);
    parlor_event opened = wait_for(first, PARLOR_NO_ROOM, PARLOR_EVENT_OPEN);
    CHECK(parlor_join("tests", opened.text, NULL, &second) == PARLOR_OK);
    wait_for(second, first, PARLOR_EVENT_OPEN);
    CHECK(parlor_send_data(second, PARLOR_TO_OTHERS, NULL, 0, -7, true, (const unsigned char *)"go", 2) == PARLOR_OK);
    parlor_event event = wait_for(first, second, PARLOR_EVENT_DATA);
    CHECK(event.number == -7 && event.order >= 0 && parlor_event_bytes(first, bytes, sizeof bytes, &length) == PARLOR_OK);
    CHECK(length == 2 && memcmp(bytes, "go", 2) == 0);
    CHECK(parlor_leave(second) == PARLOR_OK && parlor_leave(first) == PARLOR_OK);
}

/// The process of the guest begins anew.
static void resume(void) {
    char ticket[512];
    parlor_room again;
    CHECK(parlor_ticket(guest, ticket, sizeof ticket, NULL) == PARLOR_OK);
    CHECK(parlor_resume("tests", ticket, "{\"channels\":{\"32\":\"ordered\"}}", &again) == PARLOR_OK);
    wait_for(again, host, PARLOR_EVENT_OPEN);
    parlor_room_status status;
    CHECK(parlor_status(again, &status) == PARLOR_OK && status.me == 1);
    CHECK(parlor_leave(guest) == PARLOR_OK);
    guest = again;
}

int main(void) {
    open_rooms();
    use_state();
    send_inputs();
    send_messages();
    use_world();
    play_match();
    resume();
    CHECK(parlor_kick(host, 1, "enough") == PARLOR_OK);
    parlor_event event = wait_for(guest, host, PARLOR_EVENT_CLOSED);
    CHECK(strcmp(event.text, "kicked") == 0);
    CHECK(parlor_leave(guest) == PARLOR_OK && parlor_stop(host) == PARLOR_OK);
    return EXIT_SUCCESS;
}
