// The header in C++, and the functions linked from there.

#include "parlor.h"

#include <cstring>

int main() {
    parlor_room room = PARLOR_NO_ROOM;
    bool is_refused = parlor_host("dots", "{\"maxPlayers\":1}", &room) == PARLOR_INVALID || room == PARLOR_NO_ROOM;
    bool is_mine = parlor_abi_version() == PARLOR_ABI_VERSION && std::strlen(parlor_version()) > 0;
    parlor_event event{};
    event.kind = PARLOR_EVENT_OPEN;
    return is_refused && is_mine && event.kind == PARLOR_EVENT_OPEN ? 0 : 1;
}
