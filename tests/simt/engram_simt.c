/* engram with a simulated device, which SIMT in the environment describes: "order policy seed
 * failing_launch devices device_error use_error capability" in numbers (program.h). */
#include <stdio.h>
#include <stdlib.h>

#include "bench/cli/cli.h"
#include "program.h"

int main(int argc, char **argv)
{
    int order = 0, policy = 1, devices = 1, device_error = 0, use_error = 0, capability = 90;
    unsigned long seed = 1;
    long failing = 0;
    const char *text = getenv("SIMT");
    if (text && sscanf(text, "%d %d %lu %ld %d %d %d %d", &order, &policy, &seed, &failing,
                       &devices, &device_error, &use_error, &capability) < 1)
        fprintf(stderr, "SIMT: \"%s\" is not like \"0 1 1 0 1 0 0 90\"\n", text);
    simt_pretend(devices, device_error, use_error, capability);
    simt_begin(order, policy, seed, failing);
    int code = eng_cli_main(argc, argv);
    if (simt_left_over()) fprintf(stderr, "left over: %s\n", simt_left_over());
    return simt_left_over() ? 70 : code;
}
