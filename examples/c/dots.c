// Dots: everybody moves a letter in a terminal. State is a value for each player, which the host writes.
//
// `./dots` hosts a room and shows its code; `./dots CODE` joins it. It plays with the same game in Rust (examples/dots).
// Where the output is no terminal it prints a line for each change instead of a picture.

#define _POSIX_C_SOURCE 200809L

#include "parlor.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { WIDTH = 40, HEIGHT = 16, PLAYERS = 16 };

/// The game's name: only players of the same game share a room.
static const char GAME[] = "dots";

/// What this process knows of its game.
struct game {
    parlor_room room;
    bool is_screen;
    /// What this player wants in the next step.
    int dx, dy;
    bool wants_to_leave;
    char code[PARLOR_EVENT_TEXT_BYTES];
    char news[96];
    /// The places as they were shown last, by the member's id.
    int shown[PLAYERS][2];
};

/// The answer of a call that the game cannot go on without.
static void must(parlor_result result, const char *what) {
    if (result < 0) {
        fprintf(stderr, "%s: %s: %s\n", GAME, what, parlor_last_error_message());
        exit(EXIT_FAILURE);
    }
}

static int clamp(int number, int from, int to) {
    return number < from ? from : number > to ? to : number;
}

/// A whole number of some JSON, or another one if there is none: a player may send anything.
static int number(const char *json, const char *pointer, int otherwise) {
    double found;
    if (parlor_json_number(json, pointer, &found) != PARLOR_OK) return otherwise;
    return (int)(found < -1e6 ? -1e6 : found > 1e6 ? 1e6 : found);
}

static void key_of(int member, char key[32]) {
    snprintf(key, 32, "dot/%d", member);
}

/// Reads the keys that were pressed, and waits for them until the next step.
static void read_keys(struct game *game) {
    parlor_room_status status;
    must(parlor_status(game->room, &status), "status");
    double wait = status.until_next_tick < 0.03 ? status.until_next_tick : 0.03;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&input, 1, (int)(wait * 1000)) <= 0) return;
    char keys[32];
    ssize_t count = read(STDIN_FILENO, keys, sizeof keys);
    if (count <= 0) game->wants_to_leave = true;
    for (ssize_t at = 0; at < count; at++) {
        char key = keys[at];
        // An arrow is ESC [ and a letter.
        if (key == 27 && at + 2 < count && keys[at + 1] == '[') {
            key = "wsda"[clamp(keys[at + 2] - 'A', 0, 3)];
            at += 2;
        }
        switch (key) {
        case 'a': game->dx = -1; break;
        case 'd': game->dx = 1; break;
        case 'w': game->dy = -1; break;
        case 's': game->dy = 1; break;
        case ' ': {
            parlor_result sent = parlor_send(game->room, PARLOR_TO_OTHERS, NULL, 0, PARLOR_LANE_DEFAULT, 0, "horn", "null");
            // Before the room is open it is refused.
            if (sent < 0) snprintf(game->news, sizeof game->news, "%s", parlor_last_error_message());
            if (sent < 0 && !game->is_screen) printf("%s\n", game->news);
            break;
        }
        case 'q': game->wants_to_leave = true; break;
        default: break;
        }
    }
}

/// Tells what happened: in the title, or as a line.
static void tell(struct game *game, const char *what, int member) {
    snprintf(game->news, sizeof game->news, "%c %s", 'A' + member % 26, what);
    if (!game->is_screen) printf("%s %d\n", what, member);
}

/// Handles what came. What the game reads changes only in here.
static void handle_events(struct game *game) {
    parlor_event event;
    while (parlor_poll(game->room, &event) == PARLOR_OK) {
        char key[32];
        switch (event.kind) {
        case PARLOR_EVENT_OPEN:
            snprintf(game->code, sizeof game->code, "%s", event.text);
            if (!game->is_screen) printf("room %s\n", game->code);
            break;
        case PARLOR_EVENT_PLAYER_JOINED: tell(game, "joined", event.member); break;
        case PARLOR_EVENT_PLAYER_LEFT:
            tell(game, "left", event.member);
            key_of(event.member, key);
            // Only the host may; at the others it is refused.
            parlor_remove(game->room, key);
            break;
        case PARLOR_EVENT_MESSAGE:
            if (strcmp(event.text, "horn") == 0) tell(game, "honks", event.member);
            break;
        case PARLOR_EVENT_CLOSED: {
            char json[1024], why[512];
            must(parlor_event_json(game->room, json, sizeof json, NULL), "event");
            must(parlor_json_text(json, "/message", why, sizeof why, NULL), "event");
            fprintf(stderr, "%s: %s\n", GAME, why);
            exit(EXIT_FAILURE);
        }
        default: break;
        }
    }
}

/// One step at the host: what each player wants becomes its new place.
static void simulate(parlor_room room) {
    parlor_player players[PLAYERS];
    size_t count;
    must(parlor_players(room, players, PLAYERS, &count), "players");
    for (size_t at = 0; at < count; at++) {
        char key[32], json[128];
        parlor_result wants = parlor_input(room, players[at].id, json, sizeof json, NULL);
        if (wants != PARLOR_OK) continue;
        int dx = clamp(number(json, "/dx", 0), -1, 1), dy = clamp(number(json, "/dy", 0), -1, 1);
        key_of(players[at].id, key);
        if (parlor_get(room, key, PARLOR_LATEST, json, sizeof json, NULL) != PARLOR_OK) strcpy(json, "null");
        int x = clamp(number(json, "/x", WIDTH / 2) + dx, 0, WIDTH - 1);
        int y = clamp(number(json, "/y", HEIGHT / 2) + dy, 0, HEIGHT - 1);
        snprintf(json, sizeof json, "{\"x\":%d,\"y\":%d}", x, y);
        must(parlor_set(room, key, json), "set");
    }
}

/// Runs the steps that are due. The first of them takes the wish.
static void run_steps(struct game *game) {
    parlor_step_info step;
    while (parlor_step(game->room, &step) == PARLOR_OK) {
        char json[64];
        snprintf(json, sizeof json, "{\"dx\":%d,\"dy\":%d}", game->dx, game->dy);
        game->dx = game->dy = 0;
        must(parlor_send_input(game->room, json), "input");
        if (step.is_host) simulate(game->room);
    }
}

static void draw(struct game *game) {
    parlor_player players[PLAYERS];
    size_t count;
    must(parlor_players(game->room, players, PLAYERS, &count), "players");
    if (game->is_screen) {
        const char *code = *game->code ? game->code : "…";
        printf("\x1b[2J\x1b[1;1H%s  room %s  players %zu  arrows move, space honks, q leaves  %s", GAME, code, count, game->news);
    }
    for (size_t at = 0; at < count; at++) {
        char key[32], json[128];
        int id = players[at].id;
        key_of(id, key);
        if (parlor_get(game->room, key, PARLOR_LATEST, json, sizeof json, NULL) != PARLOR_OK) continue;
        int place[2] = {clamp(number(json, "/x", 0), 0, WIDTH - 1), clamp(number(json, "/y", 0), 0, HEIGHT - 1)};
        if (game->is_screen) {
            printf("\x1b[%d;%dH%c", place[1] + 3, place[0] + 1, 'A' + id % 26);
        } else if (memcmp(game->shown[id % PLAYERS], place, sizeof place) != 0) {
            printf("dot %d at %d %d\n", id, place[0], place[1]);
            memcpy(game->shown[id % PLAYERS], place, sizeof place);
        }
    }
    fflush(stdout);
}

static struct termios before;

static void restore_screen(void) {
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
    printf("\x1b[?25h\x1b[?1049l");
    fflush(stdout);
}

/// Keys come one by one, and the picture is on a screen of its own that goes away with the game.
static void prepare_screen(void) {
    if (tcgetattr(STDIN_FILENO, &before) != 0) return;
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    printf("\x1b[?1049h\x1b[?25l");
    atexit(restore_screen);
}

int main(int argc, char **argv) {
    if (parlor_abi_version() != PARLOR_ABI_VERSION) {
        fprintf(stderr, "%s: the library has another version than the header: compile it again\n", GAME);
        return EXIT_FAILURE;
    }
    struct game game = {.is_screen = isatty(STDOUT_FILENO)};
    if (argc > 1) {
        // With a lead each input reaches the host before the step that it is for, so a key moves the letter once.
        must(parlor_join(GAME, argv[1], "{\"lead\":true}", &game.room), "join");
    } else {
        must(parlor_host(GAME, "{\"maxPlayers\":8,\"hostMigration\":true}", &game.room), "host");
    }
    if (game.is_screen) prepare_screen();
    while (!game.wants_to_leave) {
        read_keys(&game);
        handle_events(&game);
        run_steps(&game);
        draw(&game);
    }
    must(parlor_leave(game.room), "leave");
    return EXIT_SUCCESS;
}
