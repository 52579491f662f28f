/* See program.h. */
#include "program.h"
#include "control.hpp"

void simt_begin(int order, int policy, unsigned long seed, long failing_launch)
{
    simt::Options options;
    options.order = (simt::Order)order;
    options.policy = (simt::Policy)policy;
    options.seed = seed;
    options.faults_stay = true;
    options.failing_launch = failing_launch;
    simt::begin(options);
}

int simt_faults(void)
{
    return simt::faults();
}

const char *simt_fault_text(void)
{
    return simt::fault_text(0);
}

long simt_launches(void)
{
    return simt::launches_done();
}
