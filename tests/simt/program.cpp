/* See program.h. */
#include "program.h"
#include "control.hpp"

static simt::Options g_pretended;

void simt_pretend(int devices, int device_error, int use_error, int capability)
{
    g_pretended.capability = capability;
    g_pretended.devices = devices;
    g_pretended.device_error = device_error;
    g_pretended.use_error = use_error;
}

void simt_leave_out(int nth)
{
    g_pretended.left_out = nth;
}

long simt_left_out(void)
{
    return simt::work_left_out();
}

void simt_begin(int order, int policy, unsigned long seed, long failing_launch)
{
    simt::Options options = g_pretended;
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

long simt_graphs(void)
{
    return simt::graphs_launched();
}

void simt_fail_allocation(long nth)
{
    simt::fail_allocation(nth);
}

long simt_live_allocations(void)
{
    return simt::live_allocations();
}

const char *simt_left_over(void)
{
    return simt::left_over();
}

long simt_activities(void)
{
    return (long)simt::activities();
}

SimtActivity simt_activity(long i)
{
    simt::Activity a = simt::activity((size_t)i);
    return {(int)a.kind, a.name, a.start_ns, a.end_ns, a.bytes, a.stream, a.correlation};
}
