/* Races: is the last access to a byte ordered before this one? See internal.hpp. */
#include "internal.hpp"

#include <algorithm>
#include <cstring>

namespace simt
{
namespace
{
bool same(const Stamp &a, const Stamp &b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Inside one block: by a block barrier, by a warp barrier, or because it is the same thread. */
bool ordered_in_block(const Stamp &before, const Stamp &now)
{
    if (before.barriers < now.barriers) return true;
    Readers readers = (Readers)before.readers;
    if (readers == Readers::block) return false;
    if (readers == Readers::one && before.thread == now.thread) return true;
    return before.thread / 32 == now.thread / 32 && before.warp_barriers < now.warp_barriers;
}

bool ordered(const Stamp &before, const Stamp &now)
{
    if (before.op == 0) return true;
    if (before.op != now.op) return happens_before(before.op, now.op);
    if ((Readers)before.readers == Readers::grid || before.block != now.block) return false;
    return ordered_in_block(before, now);
}

/* One stamp for two accesses that may both stand; `now` is not ordered after `before`. */
Stamp joined(const Stamp &before, const Stamp &now)
{
    Stamp both = now;
    if (before.op != now.op) {
        both.op = join_operations(before.op, now.op);
        both.readers = (uint32_t)Readers::grid;
    } else if (before.block != now.block || (Readers)before.readers == Readers::grid) {
        both.readers = (uint32_t)Readers::grid;
    } else if (before.thread / 32 != now.thread / 32 || (Readers)before.readers == Readers::block) {
        both.readers = (uint32_t)Readers::block;
    } else {
        both.readers = (uint32_t)Readers::warp;
        both.warp_barriers = std::max<uint32_t>(before.warp_barriers, now.warp_barriers);
    }
    return both;
}

bool note_read(Shadow *byte, const Stamp &now, Clash *clash)
{
    if (!ordered(byte->write, now)) {
        *clash = {true, byte->write, false};
        return false;
    }
    byte->read = ordered(byte->read, now) ? now : joined(byte->read, now);
    return true;
}

bool note_write(Shadow *byte, const Stamp &now, Clash *clash)
{
    bool both_atomic = byte->write.is_atomic && now.is_atomic;
    bool after_write = ordered(byte->write, now);
    if (!after_write && !both_atomic) {
        *clash = {true, byte->write, false};
        return false;
    }
    if (!ordered(byte->read, now)) {
        *clash = {true, byte->read, true};
        return false;
    }
    byte->write = after_write ? now : joined(byte->write, now);
    return true;
}
} // namespace

Clash note_access(Shadow *shadow, size_t n, Access access, const Stamp &by)
{
    Clash clash = {};
    Stamp now = by;
    now.is_atomic = access == Access::atomic;
    Shadow before = {}, after = {};
    for (size_t i = 0; i < n; i++) {
        /* Neighbouring bytes mostly share their history: the verdict of the last one stands. */
        if (i > 0 && same(shadow[i].write, before.write) && same(shadow[i].read, before.read)) {
            shadow[i] = after;
            continue;
        }
        before = shadow[i];
        bool fine = access == Access::read ? note_read(&shadow[i], now, &clash)
                                           : note_write(&shadow[i], now, &clash);
        if (!fine) return clash;
        after = shadow[i];
    }
    return clash;
}
} // namespace simt
