/* The command line: verbs with one option table each. The table feeds the parser, `--help`, ENG_*
 * variables and the suggestion for a mistyped name. A verb's file is cmd_<verb>.c; verbs.c lists
 * them.
 *
 * Options are `--name=value` or `--name value`; flags `--name`; behind `--` all are operands.
 * Precedence: command line, ENG_<NAME> (dashes as underscores) for options that say so, default.
 */
#ifndef ENG_BENCH_CLI_H
#define ENG_BENCH_CLI_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <engram/status.h>

#define ENG_CLI_MAX_OPTIONS 32
#define ENG_CLI_MAX_ARGS    256

typedef struct EngOption {
    const char *name;  /* "db" */
    char letter;       /* 'a' for -a, 0: none */
    const char *value; /* what the value is, for help: "FILE"; NULL: a flag */
    const char *def;   /* default text, NULL: unset */
    bool repeat;       /* may be given several times */
    bool env;          /* ENG_<NAME> sets it too */
    const char *help;
} EngOption;

typedef struct EngCli EngCli;

typedef struct EngVerb {
    const char *name;
    const char *operands; /* for help: "[SWEEP | EXPERIMENT]...", "" for none */
    const char *summary;  /* one line */
    const char *details;  /* paragraph(s) for `engram help VERB`, may be NULL */
    const EngOption *options;
    int n_options;
    int max_operands;
    /* Data to stdout, everything else to stderr. The status becomes the exit code; err->text is
     * printed by main. A verb that needs another code returns ENG_OK after eng_cli_exit_with(). */
    EngStatus (*run)(EngCli *cli, EngErr *err);
} EngVerb;

/* NULL when the option was not given and has no default. The name must be in the verb's table. */
const char *eng_cli_text(const EngCli *cli, const char *option);
bool eng_cli_flag(const EngCli *cli, const char *option);
/* ENG_USAGE naming option and value when it is no whole number in [min, max]. */
EngStatus eng_cli_int(const EngCli *cli, const char *option, int64_t min, int64_t max,
                      int64_t *value, EngErr *err);
/* Values of a repeated option, in order. */
int eng_cli_repeats(const EngCli *cli, const char *option);
const char *eng_cli_repeat(const EngCli *cli, const char *option, int i);
int eng_cli_operands(const EngCli *cli);
const char *eng_cli_operand(const EngCli *cli, int i);
int eng_cli_argc(const EngCli *cli);
const char *const *eng_cli_argv(const EngCli *cli);
void eng_cli_exit_with(EngCli *cli, int code);
/* For verbs that measure for long. From now on SIGINT and SIGTERM set the flag this gives, which
 * goes into the run's options. A second one of a kind ends the program at once: what that leaves is
 * what a crash leaves, and resumable. Whoever reads our log may go away; the work goes on. */
const volatile sig_atomic_t *eng_cli_watch_signals(void);

/* That the file an option names (NULL: none) can be written once the work is done, which takes
 * minutes or hours; makes its folder. ENG_USAGE: an empty name; ENG_IO. */
EngStatus eng_cli_check_writable(const EngCli *cli, const char *option, EngErr *err);

/* NULL-terminated. */
extern const EngVerb *const eng_verbs[];

/* Runs one command line; returns the process's exit code. */
int eng_cli_main(int argc, char **argv);

#endif
