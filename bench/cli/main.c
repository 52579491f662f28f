/* engram: the workbench's one program. Everything is in the verbs. */
#include "bench/cli/cli.h"

int main(int argc, char **argv)
{
    return eng_cli_main(argc, argv);
}
