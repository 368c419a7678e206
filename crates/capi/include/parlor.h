// Parlor: rooms for games, by plain C functions. docs/engines.md shows how a game uses them.
//
// Made by cbindgen from crates/capi, whose test `header` makes it anew. Do not edit it.
//
// Rules
//
// 1. A pointer leads to what its function says, for the time of the call: a `const char *` to UTF-8 with a NUL, a pointer
//    with a length or capacity to as many items, any other to one item. Nobody else writes there meanwhile. Wrong NULLs
//    are refused with PARLOR_INVALID. Parlor keeps no pointer after a call.
// 2. A parlor_room is a number. One that was left is refused with PARLOR_NO_SUCH_ROOM, whatever came after it.
// 3. Each function that returns a parlor_result gives PARLOR_OK, PARLOR_NONE where there is nothing, or an error below 0.
//    After an error nothing changed, and parlor_last_error_message says what was wrong and what to do.
// 4. What is given out goes into the caller's memory: `buffer` has `capacity` items, `*length` gets the length; `length`
//    may be NULL. Texts get a NUL, which the capacity counts and the length does not. If the buffer is too small the call
//    gives PARLOR_TOO_SMALL and `*length` what is needed; with capacity 0 the buffer may be NULL. Nothing is to be freed.
// 5. Any thread may call any function. Calls on one room wait for each other, so a game keeps a room to one thread. Sockets
//    are on threads of the library, which call nothing of the game. The library cannot be unloaded.
// 6. Values, options and descriptions are JSON with the names of the TypeScript API. A whole number is an int, one with a
//    point a float. Bytes within JSON are a list of numbers.
//
// A frame of a game
//
//     while (parlor_poll(room, &event) == PARLOR_OK) { ... }        // events; what is read changes only here
//     while (parlor_step(room, &step) == PARLOR_OK) {               // a fixed step is due
//         parlor_send_input(room, "{\"dx\":1}");                    // what this player wants
//         if (step.is_host) { ... parlor_input, parlor_set ... }    // only the host writes state
//     }
//     parlor_get(room, "dot/1", PARLOR_DRAWN, json, sizeof json, NULL);
//
// Rows and columns of components
//
// A row has the numbers of all fields as double, in their order: bool 0 or 1, oneOf by index, vectors x y z, rotations
// x y z w, transform position and rotation, body position, rotation, velocity, spin. Then for each field of text, bytes or
// any: a uint32_t length, and as many bytes (any: a Value as in PROTOCOL.md). Columns are many rows: uint32_t count, a
// uint32_t 0, count entities (uint32_t), count owners (int32_t), for each number count doubles, for each of the rest count
// times length and bytes. All is little-endian, and not aligned after the first text.


#ifndef PARLOR_H
#define PARLOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && !defined(PARLOR_STATIC)
#define PARLOR_API __declspec(dllimport)
#else
#define PARLOR_API
#endif


// Number of the functions' form. It changes when a program that was compiled with an older header would break.
#define PARLOR_ABI_VERSION 1

// The room of no handle.
#define PARLOR_NO_ROOM 0

// No member, where a member may be absent: an owner, a host.
#define PARLOR_NOBODY -2

// Bytes of `parlor_event.text`, its NUL included.
#define PARLOR_EVENT_TEXT_BYTES 128

// Bytes of `parlor_player.name`, its NUL included.
#define PARLOR_PLAYER_NAME_BYTES 52

// What a function came to. Negative ones are errors: nothing changed, and parlor_last_error_message tells why.
enum parlor_result
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // It is done.
  PARLOR_OK = 0,
  // There is nothing: no event, no step due, no such key, no input.
  PARLOR_NONE = 1,
  // An argument is wrong: NULL, no UTF-8, no JSON, an unknown option, a number out of its range.
  PARLOR_INVALID = -1,
  // The handle is of no room, or of one that was left.
  PARLOR_NO_SUCH_ROOM = -2,
  // The buffer is too small. `*length` is what is needed, the NUL of a text not counted. Nothing was written.
  PARLOR_TOO_SMALL = -3,
  // The room refuses: it is not open, this process is not its host, something is beyond its bounds.
  // parlor_last_error_code has the word for it.
  PARLOR_REFUSED = -4,
  // A fault in Parlor itself. The room should be left.
  PARLOR_PANICKED = -5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum parlor_result parlor_result;
#else
typedef int32_t parlor_result;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What happened.
enum parlor_event_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Something that this version has no number for: parlor_event_json tells it.
  PARLOR_EVENT_OTHER = 0,
  // The room is open. text: the code to share, or the id of the match.
  PARLOR_EVENT_OPEN = 1,
  // A player is in the room. member, text: its name.
  PARLOR_EVENT_PLAYER_JOINED = 2,
  // A player has left. member, text: its name.
  PARLOR_EVENT_PLAYER_LEFT = 3,
  // A spectator is in the room. member, text: its name.
  PARLOR_EVENT_SPECTATOR_JOINED = 4,
  // A spectator has left. member, text: its name.
  PARLOR_EVENT_SPECTATOR_LEFT = 5,
  // A player's connection is lost; its seat is kept for a while. member.
  PARLOR_EVENT_PLAYER_LOST = 6,
  // A player has reconnected. member.
  PARLOR_EVENT_PLAYER_BACK = 7,
  // Player data changed. member, text: the key. parlor_event_value has the value; none if it was removed.
  PARLOR_EVENT_PLAYER_DATA = 8,
  // This process has lost its connection, and makes it again. text: the cause.
  PARLOR_EVENT_CONNECTION_LOST = 9,
  // Another attempt to connect. number: its number, from 1.
  PARLOR_EVENT_RECONNECTING = 10,
  // This process is connected again. is_so: whether it had to join anew.
  PARLOR_EVENT_RECONNECTED = 11,
  // Another player becomes the host. member: the new one, is_so: whether it is this process.
  PARLOR_EVENT_HOST_MIGRATION = 12,
  // The new host has the world. member.
  PARLOR_EVENT_HOST_CHANGED = 13,
  // This process stays the host: what parlor_hand_over asked for was refused. text: why.
  PARLOR_EVENT_HAND_OVER_REFUSED = 14,
  // A message. member: the sender, text: its kind. parlor_event_value has what it says.
  PARLOR_EVENT_MESSAGE = 15,
  // Bytes on a channel of the game's own. member: the sender, number: the channel. See parlor_event_bytes.
  PARLOR_EVENT_BYTES = 16,
  // Data of a match. member: the sender, number: its op. See parlor_event_bytes.
  PARLOR_EVENT_DATA = 17,
  // A player's connection became slow, or recovered. member, is_so: whether it is slow.
  PARLOR_EVENT_SLOW = 18,
  // This player sends more than the room allows. Raised once.
  PARLOR_EVENT_THROTTLED = 19,
  // Keyed state came from the host. number: its sequence.
  PARLOR_EVENT_STATE = 20,
  // An entity came into view. entity.
  PARLOR_EVENT_SPAWNED = 21,
  // An entity is gone, or out of view. entity.
  PARLOR_EVENT_DESPAWNED = 22,
  // A player asks for an action, at the host. member, entity, text: its name. See parlor_event_value.
  PARLOR_EVENT_ACTION = 23,
  // An action of this player was refused. entity, text: its name.
  PARLOR_EVENT_ACTION_REFUSED = 24,
  // The primary changed. member: PARLOR_NOBODY for none.
  PARLOR_EVENT_PRIMARY = 25,
  // The room is over for this process. text: the word for why (left, kicked, no_such_room, …);
  // `message` of parlor_event_json tells it to a person. No event follows.
  PARLOR_EVENT_CLOSED = 26,
  // Another server has reopened the room, and the game goes on. is_so: whether messages may have been lost.
  PARLOR_EVENT_REOPENED = 27,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum parlor_event_kind parlor_event_kind;
#else
typedef int32_t parlor_event_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How a room is, in parlor_room_status.flags.
enum parlor_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // This process is in the room.
  PARLOR_IS_OPEN = 1,
  // This process is the host.
  PARLOR_IS_HOST = 2,
  // A new host is awaited.
  PARLOR_IS_MIGRATING = 4,
  // The connection is lost, and made again.
  PARLOR_IS_RECONNECTING = 8,
  // The room is over for this process.
  PARLOR_IS_CLOSED = 16,
  // The running step was run before.
  PARLOR_IS_REPLAY = 32,
  // This process watches only.
  PARLOR_IS_SPECTATOR = 64,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum parlor_flag parlor_flag;
#else
typedef uint32_t parlor_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How a message travels.
enum parlor_lane
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // As the room's option `protocol` says; reliable and in order by default.
  PARLOR_LANE_DEFAULT = 0,
  // May be lost, or come late.
  PARLOR_LANE_UNRELIABLE = 1,
  // May be lost; what a newer one has overtaken is dropped.
  PARLOR_LANE_SEQUENCED = 2,
  // Is not lost; in any order.
  PARLOR_LANE_RELIABLE = 3,
  // Is not lost, in the order of sending.
  PARLOR_LANE_ORDERED = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum parlor_lane parlor_lane;
#else
typedef int32_t parlor_lane;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How a player is, in parlor_player.flags.
enum parlor_player_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // It is the host.
  PARLOR_PLAYER_IS_HOST = 1,
  // It is this process.
  PARLOR_PLAYER_IS_ME = 2,
  // Its connection stands.
  PARLOR_PLAYER_IS_CONNECTED = 4,
  // Its connection is slower than the room.
  PARLOR_PLAYER_IS_SLOW = 8,
  // It and the host have a direct path.
  PARLOR_PLAYER_IS_DIRECT = 16,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum parlor_player_flag parlor_player_flag;
#else
typedef uint32_t parlor_player_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Who gets a message.
enum parlor_recipient
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The host.
  PARLOR_TO_HOST = 0,
  // All but this process.
  PARLOR_TO_OTHERS = 1,
  // All, this process included.
  PARLOR_TO_ALL = 2,
  // The member that the server has named primary.
  PARLOR_TO_PRIMARY = 3,
  // The members of the list.
  PARLOR_TO_MEMBERS = 4,
  // All but the members of the list.
  PARLOR_TO_EXCEPT = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum parlor_recipient parlor_recipient;
#else
typedef int32_t parlor_recipient;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Options of a message: add them up.
enum parlor_send_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // All receivers get these messages in the same order, whoever sent them.
  PARLOR_SEND_NUMBERED = 1,
  // It carries the time of sending, `eventTimeMs` of its event.
  PARLOR_SEND_TIMED = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum parlor_send_flag parlor_send_flag;
#else
typedef uint32_t parlor_send_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What parlor_describe describes.
enum parlor_topic
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The room: code, role, paths, the server.
  PARLOR_INFO = 0,
  // Counters and measurements.
  PARLOR_DIAGNOSTICS = 1,
  // Counters of the world's stream.
  PARLOR_WORLD_DIAGNOSTICS = 2,
  // All players with their data, by id.
  PARLOR_PLAYERS = 3,
  // All spectators, by id.
  PARLOR_SPECTATORS = 4,
  // The components of the room's schema: the fields of their rows.
  PARLOR_COMPONENTS = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum parlor_topic parlor_topic;
#else
typedef int32_t parlor_topic;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What to read of keyed state or of a component.
enum parlor_view
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // As the host wrote it last; a predicted component as predicted.
  PARLOR_LATEST = 0,
  // For display: a little in the past, so that it moves evenly.
  PARLOR_DRAWN = 1,
  // Keys alone: as this process predicted it with parlor_set_predicted.
  PARLOR_PREDICTED = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum parlor_view parlor_view;
#else
typedef int32_t parlor_view;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A room: a number, not a pointer. One that was left, or never was, is refused with PARLOR_NO_SUCH_ROOM.
typedef uint64_t parlor_room;

// An event: what most games need of it. parlor_event_json has all.
typedef struct {
  // What happened. It says which of the fields below are set.
  parlor_event_kind kind;
  // Whom it is about, or who sent it; PARLOR_NOBODY for none, and for the server as the sender.
  int32_t member;
  // The entity; 0 if there is none.
  uint32_t entity;
  // Depends on the kind.
  bool is_so;
  // Depends on the kind.
  int64_t number;
  // Its number in the room's order, if its sender asked for one; -1 otherwise.
  int64_t order;
  // Depends on the kind: UTF-8, with its NUL. A longer text is cut; parlor_event_json has the whole.
  char text[PARLOR_EVENT_TEXT_BYTES];
} parlor_event;

// A step that has begun.
typedef struct {
  // Its number, the same for all members.
  uint32_t tick;
  // Whether it was run before, and is run again after a correction. Sounds and flashes: see parlor_once.
  bool is_replay;
  // Whether this process is the host, which reads inputs and writes state.
  bool is_host;
} parlor_step_info;

// How a room is. Times are in seconds; -1 if unknown.
typedef struct {
  // The sum of parlor_flag.
  uint32_t flags;
  // This member; PARLOR_NOBODY before the room is open.
  int32_t me;
  // The host; PARLOR_NOBODY if there is none.
  int32_t host;
  // The number of the last step.
  uint32_t tick;
  // Steps per second; 0 before the room is open.
  uint32_t tick_hz;
  // Players in the room.
  uint32_t players;
  // Time until the next step: for a loop that sleeps. 1 while none is due.
  double until_next_tick;
  // Time since the room opened, the same for all members.
  double server_time;
  // Round trip to the server.
  double ping;
  // Round trip to the host.
  double host_ping;
} parlor_room_status;

// A player, or a spectator.
typedef struct {
  // Its id, never reused in the same room.
  int32_t id;
  // The sum of parlor_player_flag.
  uint32_t flags;
  // Round trip to the server in seconds; -1 if unknown.
  double ping;
  // Its name: UTF-8, with its NUL.
  char name[PARLOR_PLAYER_NAME_BYTES];
} parlor_player;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The PARLOR_ABI_VERSION of the library. A program checks that it is that of its header.
PARLOR_API uint32_t parlor_abi_version(void);

// The version of Parlor, such as "0.2.0". It is static: do not free it.
PARLOR_API const char *parlor_version(void);

// What the last error of this thread was, for a person: it says what to do. Empty before the first. It is the
// library's: do not free it, and copy it before the next call of this thread.
PARLOR_API const char *parlor_last_error_message(void);

// The word of the last error of this thread, for a program: "not_host", "not_open", "bad_options" and so on. As of
// parlor_last_error_message.
PARLOR_API const char *parlor_last_error_code(void);

// Reads a number out of JSON: of an event, of a value. `pointer` is a JSON Pointer (RFC 6901), such as "/x" or
// "/player/id"; "" is the whole. true and false are 1 and 0. PARLOR_NONE if there is no number.
PARLOR_API parlor_result parlor_json_number(const char *json, const char *pointer, double *number);

// Reads a text out of JSON, as parlor_json_number reads a number. What is no text is given as JSON. PARLOR_NONE if
// there is nothing.
PARLOR_API
parlor_result parlor_json_text(const char *json,
                               const char *pointer,
                               char *buffer,
                               size_t capacity,
                               size_t *length);

// Sends a message of this kind, with a JSON value. `to` is a parlor_recipient; `members` are those that it names, NULL
// otherwise. `lane` is a parlor_lane, `flags` a sum of parlor_send_flag. Receivers get PARLOR_EVENT_MESSAGE.
PARLOR_API
parlor_result parlor_send(parlor_room room,
                          int32_t to,
                          const int32_t *members,
                          size_t count,
                          int32_t lane,
                          uint32_t flags,
                          const char *kind,
                          const char *value);

// Sends bytes on a channel of the game's own, which the option `channels` declares with its lane. `to` and `members` as
// of parlor_send. Receivers get PARLOR_EVENT_BYTES.
PARLOR_API
parlor_result parlor_send_bytes(parlor_room room,
                                int32_t to,
                                const int32_t *members,
                                size_t count,
                                uint8_t channel,
                                const uint8_t *data,
                                size_t length);

// Sends data to players of a match: a number that says what it is, and bytes. Reliable data reaches all in the same
// order; the rest may be lost. `to` and `members` as of parlor_send. Receivers get PARLOR_EVENT_DATA.
PARLOR_API
parlor_result parlor_send_data(parlor_room room,
                               int32_t to,
                               const int32_t *members,
                               size_t count,
                               int64_t op,
                               bool is_reliable,
                               const uint8_t *data,
                               size_t length);

// Asks the host to let something happen to an entity of this player's own. The host gets PARLOR_EVENT_ACTION.
PARLOR_API parlor_result parlor_act(parlor_room room, uint32_t entity, const char *name, const char *value);

// Opens a room of the game `app` with this process as its host. `options` is JSON (docs/engines.md has the names), or
// NULL. It returns at once: events tell how it goes, PARLOR_EVENT_OPEN with the code to share, or
// PARLOR_EVENT_CLOSED. The caller owns `*room` and ends it with parlor_leave or parlor_stop.
PARLOR_API parlor_result parlor_host(const char *app, const char *options, parlor_room *room);

// Joins a room or match of the game `app`. `invite` is its code, its invite link, or the id of a match. As
// parlor_host.
PARLOR_API parlor_result parlor_join(const char *app, const char *invite, const char *options, parlor_room *room);

// Joins the only room of the game `app` at an address, without a code. As parlor_host.
PARLOR_API
parlor_result parlor_join_at(const char *app,
                             const char *address,
                             uint16_t port,
                             const char *options,
                             parlor_room *room);

// Opens a match of the game `app`: a room without a host, whose members are equal and send each other
// parlor_send_data. The code of its PARLOR_EVENT_OPEN is the id by which others join. As parlor_host.
PARLOR_API parlor_result parlor_create_match(const char *app, const char *options, parlor_room *room);

// Takes the seat that an earlier process of this player had, by the ticket that parlor_ticket gave it. As parlor_host.
PARLOR_API
parlor_result parlor_resume(const char *app,
                            const char *ticket,
                            const char *options,
                            parlor_room *room);

// Leaves the room and frees its handle. Waits at most a second for what is still to be sent. When the host leaves, the
// room ends, or another player becomes the host (option `hostMigration`).
PARLOR_API
parlor_result parlor_leave(parlor_room room);

// Ends the room for all if this process is the host; otherwise leaves it. As parlor_leave.
PARLOR_API parlor_result parlor_stop(parlor_room room);

// Gives the next event; PARLOR_NONE if there are no more. All that a game reads changes only in here, so a frame
// begins with `while (parlor_poll(room, &event) == PARLOR_OK)`.
PARLOR_API parlor_result parlor_poll(parlor_room room, parlor_event *event);

// Gives the last event of parlor_poll as JSON: `{"type": "playerJoined", "player": {…}}`. PARLOR_NONE if it gave none.
PARLOR_API
parlor_result parlor_event_json(parlor_room room,
                                char *buffer,
                                size_t capacity,
                                size_t *length);

// Gives what the last event brought as JSON: of a message, an action, or player data. PARLOR_NONE if it has no value.
PARLOR_API parlor_result parlor_event_value(parlor_room room, char *buffer, size_t capacity, size_t *length);

// Gives the bytes of the last event: of PARLOR_EVENT_BYTES and PARLOR_EVENT_DATA, and of a message whose value is
// bytes. PARLOR_NONE if it has none.
PARLOR_API parlor_result parlor_event_bytes(parlor_room room, uint8_t *buffer, size_t capacity, size_t *length);

// Begins a fixed step if one is due; PARLOR_NONE if not. State and inputs are sent when none is, so call it until it
// gives that. `info` may be NULL.
PARLOR_API parlor_result parlor_step(parlor_room room, parlor_step_info *info);

// Brings the time that has passed in the game, in seconds, for an engine with a time of its own, which may pause. Call
// it in each frame before parlor_step. From the first call on no step is due without it.
PARLOR_API
parlor_result parlor_advance(parlor_room room,
                             double seconds);

// Whether to show an effect such as a sound: PARLOR_OK the first time that it is asked for under this number within
// 256 ticks, PARLOR_NONE when the step that brings it is run again.
PARLOR_API parlor_result parlor_once(parlor_room room, const char *effect, uint64_t number);

// Says what this player wants in this step, as JSON of at most 512 bytes when it is encoded. Call it once in each
// step; in a replay it does nothing. The host's own goes the same way.
PARLOR_API parlor_result parlor_send_input(parlor_room room, const char *input);

// As parlor_send_input, with bytes: a struct of the game's own.
PARLOR_API parlor_result parlor_send_input_bytes(parlor_room room, const uint8_t *data, size_t length);

// Gives what a player wants in this step, as JSON: its newest input. PARLOR_NONE before its first. The host reads
// everybody's, a guest its own.
PARLOR_API
parlor_result parlor_input(parlor_room room,
                           int32_t player,
                           char *buffer,
                           size_t capacity,
                           size_t *length);

// As parlor_input, of an input that is bytes.
PARLOR_API
parlor_result parlor_input_bytes(parlor_room room,
                                 int32_t player,
                                 uint8_t *buffer,
                                 size_t capacity,
                                 size_t *length);

// Gives the newest step whose input of a player the host has used; PARLOR_NONE if none was.
PARLOR_API parlor_result parlor_input_ack(parlor_room room, int32_t player, uint32_t *tick);

// Gives how the room is.
PARLOR_API parlor_result parlor_status(parlor_room room, parlor_room_status *status);

// Describes the room by JSON. `topic` is a parlor_topic. PARLOR_NONE if there is nothing yet.
PARLOR_API
parlor_result parlor_describe(parlor_room room,
                              int32_t topic,
                              char *buffer,
                              size_t capacity,
                              size_t *length);

// Gives the code of the room, or the id of the match; PARLOR_NONE before it is known. 64 bytes are enough.
PARLOR_API parlor_result parlor_code(parlor_room room, char *buffer, size_t capacity, size_t *length);

// Gives the invite link: the code, the secret, and the server unless it is on this machine only. PARLOR_NONE before
// the room is open.
PARLOR_API parlor_result parlor_invite_link(parlor_room room, char *buffer, size_t capacity, size_t *length);

// Gives the ticket with which another process takes this seat (parlor_resume), if this one ends without leaving. It is
// a secret, and another one after each reconnection. PARLOR_NONE while the room is not open.
PARLOR_API
parlor_result parlor_ticket(parlor_room room,
                            char *buffer,
                            size_t capacity,
                            size_t *length);

// Gives all players by id, as of the last parlor_poll. `*count` is how many there are.
PARLOR_API parlor_result parlor_players(parlor_room room, parlor_player *players, size_t capacity, size_t *count);

// Gives all spectators by id, as parlor_players gives players.
PARLOR_API
parlor_result parlor_spectators(parlor_room room,
                                parlor_player *spectators,
                                size_t capacity,
                                size_t *count);

// Sets a value of player data, JSON that all members see: of this player, or at the host of any. NULL removes it.
PARLOR_API parlor_result parlor_set_player_data(parlor_room room, int32_t player, const char *key, const char *value);

// Removes a player from the room, at the host. The player gets the reason.
PARLOR_API parlor_result parlor_kick(parlor_room room, int32_t player, const char *reason);

// Hands the host's part over to another player, at the host of a room with `hostMigration`. PARLOR_NOBODY: to whom the
// server names.
PARLOR_API
parlor_result parlor_hand_over(parlor_room room,
                               int32_t player);

// Sets a key to a JSON value, at the host. All members have it after the step. A key has at most 64 bytes, a value
// 16 KiB, all of them 60 KiB.
PARLOR_API parlor_result parlor_set(parlor_room room, const char *key, const char *value);

// Sets a key to bytes: a struct of the game's own. As parlor_set, and never drawn in between.
PARLOR_API parlor_result parlor_set_bytes(parlor_room room, const char *key, const uint8_t *data, size_t length);

// Sets a key that only these members see. It is never sent to others. As parlor_set.
PARLOR_API
parlor_result parlor_set_for(parlor_room room,
                             const int32_t *seen_by,
                             size_t count,
                             const char *key,
                             const char *value);

// Removes a key, at the host; PARLOR_NONE if there was none.
PARLOR_API parlor_result parlor_remove(parlor_room room, const char *key);

// Declares how the values of all keys that begin with `prefix` move between updates, at the host. `hints` is JSON:
// `{"angle": [path], "snap": [path], "linear": [path], "period": {path: number}}`, each left out or there.
PARLOR_API parlor_result parlor_declare(parlor_room room, const char *prefix, const char *hints);

// Gives the value of a key as JSON; PARLOR_NONE if there is none. `view` is a parlor_view.
PARLOR_API
parlor_result parlor_get(parlor_room room,
                         const char *key,
                         int32_t view,
                         char *buffer,
                         size_t capacity,
                         size_t *length);

// Gives the value of a key that is bytes; PARLOR_NONE if there is none. `view` is a parlor_view.
PARLOR_API
parlor_result parlor_get_bytes(parlor_room room,
                               const char *key,
                               int32_t view,
                               uint8_t *buffer,
                               size_t capacity,
                               size_t *length);

// Predicts a key: what it will be once the host has used this player's input of this step.
PARLOR_API parlor_result parlor_set_predicted(parlor_room room, const char *key, const char *value);

// Gives all keys that begin with `prefix`, in ascending order: texts one after another, each with its NUL. `*length`
// is that of all, their NULs included; 0 for none.
PARLOR_API
parlor_result parlor_keys(parlor_room room,
                          const char *prefix,
                          char *buffer,
                          size_t capacity,
                          size_t *length);

// Gives the number of a component of the room's schema, once the room is open.
PARLOR_API parlor_result parlor_component(parlor_room room, const char *name, uint8_t *component);

// Gives all entities that this process sees. `*count` is how many there are.
PARLOR_API parlor_result parlor_entities(parlor_room room, uint32_t *entities, size_t capacity, size_t *count);

// Gives the owner of an entity: PARLOR_NOBODY if it has none.
PARLOR_API parlor_result parlor_owner(parlor_room room, uint32_t entity, int32_t *owner);

// Spawns an entity without components, at the host. `owner` may be PARLOR_NOBODY.
PARLOR_API parlor_result parlor_spawn(parlor_room room, int32_t owner, uint32_t *entity);

// Takes an entity away, at the host.
PARLOR_API parlor_result parlor_despawn(parlor_room room, uint32_t entity);

// Gives an entity to another owner, at the host. `owner` may be PARLOR_NOBODY.
PARLOR_API parlor_result parlor_transfer(parlor_room room, uint32_t entity, int32_t owner);

// Puts an entity into a zone, at the host: only who owns an entity there sees it. 0 is everywhere.
PARLOR_API parlor_result parlor_set_zone(parlor_room room, uint32_t entity, uint32_t zone);

// Sets who sees an entity, at the host: these members, or all if `seen_by` is NULL and `count` 0.
PARLOR_API parlor_result parlor_set_audience(parlor_room room, uint32_t entity, const int32_t *seen_by, size_t count);

// Gives a component of an entity as a row (see the head); PARLOR_NONE if it has none. `view` is PARLOR_LATEST or
// PARLOR_DRAWN. A component without texts, bytes and values is an array of double, or a struct of them.
PARLOR_API
parlor_result parlor_read_component(parlor_room room,
                                    uint32_t entity,
                                    uint8_t component,
                                    int32_t view,
                                    uint8_t *buffer,
                                    size_t capacity,
                                    size_t *length);

// Sets a component of an entity from a row: at the host of any, at a guest what it predicts of its own (option
// `predict`). Numbers beyond the range of their field are moved to its end.
PARLOR_API
parlor_result parlor_write_component(parlor_room room,
                                     uint32_t entity,
                                     uint8_t component,
                                     const uint8_t *row,
                                     size_t length);

// Takes a component from an entity, where parlor_write_component could set it; PARLOR_NONE if it had none.
PARLOR_API parlor_result parlor_remove_component(parlor_room room, uint32_t entity, uint8_t component);

// Gives a component of all entities that have it as columns (see the head): for worlds of many. `view` is
// PARLOR_LATEST or PARLOR_DRAWN.
PARLOR_API
parlor_result parlor_read_columns(parlor_room room,
                                  uint8_t component,
                                  int32_t view,
                                  uint8_t *buffer,
                                  size_t capacity,
                                  size_t *length);

// Sets a component of many entities from columns, as parlor_write_component sets one. After an error, those before the
// entity that it names are set.
PARLOR_API
parlor_result parlor_write_columns(parlor_room room,
                                   uint8_t component,
                                   const uint8_t *columns,
                                   size_t length);

// Gives a component of all entities as a player saw them when it made the input that counts in this step, at the host:
// to judge a shot by what the shooter aimed at. As parlor_read_columns. `back` is how far that is back, in seconds; it
// may be NULL.
PARLOR_API
parlor_result parlor_rewind(parlor_room room,
                            int32_t player,
                            uint8_t component,
                            uint8_t *buffer,
                            size_t capacity,
                            size_t *length,
                            double *back);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PARLOR_H */
