/* Start-up; see startup.h. */
#include "sim/planner/startup.h"

#include <math.h>

static double span(double bytes, double rate)
{
    return bytes == 0 ? 0 : rate > 0 ? bytes / rate : NAN;
}

EngStatus eng_startup_plan(const EngStartupInput *in, EngStartup *startup, EngErr *err)
{
    if (!(in->bytes >= 0 && in->pinned >= 0 && in->pinned <= in->bytes && in->copies >= 1 &&
          in->read_rate >= 0 && in->populate_rate >= 0 && in->pin_rate >= 0))
        return ENG_FAIL(err, ENG_USAGE,
                        "start-up: %g B, %g pinned, %g copies, rates %g, %g, %g B/s", in->bytes,
                        in->pinned, in->copies, in->read_rate, in->populate_rate, in->pin_rate);
    startup->read = span(in->bytes / in->copies, in->read_rate);
    startup->populate = span(in->bytes, in->populate_rate);
    startup->pin = span(in->pinned, in->pin_rate);
    double first = startup->read > startup->populate ? startup->read : startup->populate;
    startup->total = isnan(startup->read) ? NAN : first + startup->pin;
    return ENG_OK;
}
