/* Parsing of verbs and options, and their help, all from the option tables; see cli.h. */
#include "bench/cli/cli.h"

#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"

typedef struct Given {
    int option;
    const char *value;
} Given;

struct EngCli {
    const EngVerb *verb;
    int argc;
    char **argv;
    Given given[ENG_CLI_MAX_ARGS];
    int n_given;
    const char *operands[ENG_CLI_MAX_ARGS];
    int n_operands;
    bool help;
    int exit_code; /* -1: from the status */
};

static int find_option(const EngVerb *verb, const char *name)
{
    for (int i = 0; i < verb->n_options; i++)
        if (!strcmp(verb->options[i].name, name)) return i;
    return -1;
}

/* ENG_DATA_DIR for "data-dir". */
static const char *from_environment(const char *option)
{
    char name[64] = "ENG_";
    size_t n = 4;
    for (; *option && n < sizeof name - 1; option++)
        name[n++] = *option == '-' ? '_' : (char)toupper((unsigned char)*option);
    name[n] = 0;
    return getenv(name);
}

const char *eng_cli_text(const EngCli *cli, const char *option)
{
    int index = find_option(cli->verb, option);
    if (index < 0) return NULL;
    for (int i = cli->n_given - 1; i >= 0; i--)
        if (cli->given[i].option == index) return cli->given[i].value;
    const char *text = cli->verb->options[index].env ? from_environment(option) : NULL;
    return text ? text : cli->verb->options[index].def;
}

bool eng_cli_flag(const EngCli *cli, const char *option)
{
    return eng_cli_text(cli, option) != NULL;
}

EngStatus eng_cli_int(const EngCli *cli, const char *option, int64_t min, int64_t max,
                      int64_t *value, EngErr *err)
{
    const char *text = eng_cli_text(cli, option);
    if (!text) return ENG_FAIL(err, ENG_USAGE, "--%s needs a value", option);
    if (eng_parse_i64(text, value) && *value >= min && *value <= max) return ENG_OK;
    return ENG_FAIL(err, ENG_USAGE, "--%s=%s: not a whole number from %lld to %lld", option, text,
                    (long long)min, (long long)max);
}

int eng_cli_repeats(const EngCli *cli, const char *option)
{
    int index = find_option(cli->verb, option), n = 0;
    for (int i = 0; i < cli->n_given; i++) n += cli->given[i].option == index;
    return n;
}

const char *eng_cli_repeat(const EngCli *cli, const char *option, int i)
{
    int index = find_option(cli->verb, option);
    for (int g = 0; g < cli->n_given; g++)
        if (cli->given[g].option == index && i-- == 0) return cli->given[g].value;
    return NULL;
}

int eng_cli_operands(const EngCli *cli)
{
    return cli->n_operands;
}

const char *eng_cli_operand(const EngCli *cli, int i)
{
    return i < cli->n_operands ? cli->operands[i] : NULL;
}

int eng_cli_argc(const EngCli *cli)
{
    return cli->argc;
}

const char *const *eng_cli_argv(const EngCli *cli)
{
    return (const char *const *)cli->argv;
}

void eng_cli_exit_with(EngCli *cli, int code)
{
    cli->exit_code = code;
}

static volatile sig_atomic_t g_interrupted;

static void on_signal(int number)
{
    (void)number;
    g_interrupted = 1;
}

const volatile sig_atomic_t *eng_cli_watch_signals(void)
{
    /* Some of oneDNN's products use the stack pointer for a buffer on the heap: a handler must have
     * a stack of its own, or its frame overwrites what lies below. */
    static unsigned char stack[64 << 10];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    /* No SA_RESTART: waiting for a worker must end. */
    struct sigaction action = {.sa_handler = on_signal,
                               .sa_flags = (int)(SA_RESETHAND | SA_ONSTACK)};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    return &g_interrupted;
}

/* ---- help --------------------------------------------------------------------------------------
 */

#define HELP_COLUMNS 100
#define HELP_LEFT    29 /* columns of an option's name */

/* Text in lines of HELP_COLUMNS at most, broken at spaces; `indent` before all but the first. */
static void print_wrapped(const char *text, size_t indent, FILE *out)
{
    size_t used = indent;
    for (const char *word = text; *word;) {
        size_t spaces = strspn(word, " "), length = strcspn(word + spaces, " \n");
        if (used > indent && used + spaces + length > HELP_COLUMNS) {
            fprintf(out, "\n%*s", (int)indent, "");
            used = indent;
            spaces = 0;
            word += strspn(word, " ");
        }
        fprintf(out, "%.*s", (int)(spaces + length), word);
        used += spaces + length;
        word += spaces + length;
        if (*word == '\n') {
            fprintf(out, "\n%*s", (int)indent, "");
            used = indent;
            word++;
        }
    }
    fputc('\n', out);
}

/* "values of an axis (default x) (repeatable) [ENG_AXIS]". */
static void option_text(const EngOption *o, EngStr *out)
{
    eng_str_add(out, o->help);
    if (o->def) eng_str_printf(out, " (default %s)", o->def);
    if (o->repeat) eng_str_add(out, " (repeatable)");
    if (!o->env) return;
    eng_str_add(out, " [ENG_");
    for (const char *p = o->name; *p; p++)
        eng_str_printf(out, "%c", *p == '-' ? '_' : toupper((unsigned char)*p));
    eng_str_add(out, "]");
}

static void print_overview(FILE *out)
{
    fprintf(out,
            "engram " ENG_VERSION ": profiling and design-space exploration for Engram memories\n\n"
            "usage: engram VERB [options]\n\n");
    for (int i = 0; eng_verbs[i]; i++)
        fprintf(out, "  %-9s %s\n", eng_verbs[i]->name, eng_verbs[i]->summary);
    fprintf(out, "\n`engram VERB --help` tells a verb's options.\n"
                 "Exit codes: 0 fine, 1 usage, 2 some points failed or wrong, 3 regression, 4 "
                 "inconclusive,\n"
                 "5 nothing matched, 6 bad input data, 7 environment (disk, memory, database), 77 "
                 "no device,\n"
                 "130 interrupted (run again to resume).\n");
}

static void print_verb(const EngVerb *verb, FILE *out)
{
    fprintf(out, "usage: engram %s%s%s%s\n\n%s\n", verb->name, verb->n_options ? " [options]" : "",
            verb->operands[0] ? " " : "", verb->operands, verb->summary);
    if (verb->details) {
        fputc('\n', out);
        print_wrapped(verb->details, 0, out);
    }
    if (verb->n_options) fprintf(out, "\noptions\n");
    for (int i = 0; i < verb->n_options; i++) {
        const EngOption *o = &verb->options[i];
        char left[64];
        snprintf(left, sizeof left, "%s%s%s%s%s", o->letter ? (char[]){'-', o->letter, ' ', 0} : "",
                 "--", o->name, o->value ? "=" : "", o->value ? o->value : "");
        EngStr text = {0};
        option_text(o, &text);
        int used = fprintf(out, "  %-26s ", left);
        if (used > HELP_LEFT) fprintf(out, "\n%*s", HELP_LEFT, "");
        print_wrapped(text.text ? text.text : o->help, HELP_LEFT, out);
        eng_str_free(&text);
    }
}

/* ---- parsing -----------------------------------------------------------------------------------
 */

static EngStatus unknown_option(const EngVerb *verb, const char *name, EngErr *err)
{
    const char *names[ENG_CLI_MAX_OPTIONS];
    for (int i = 0; i < verb->n_options; i++) names[i] = verb->options[i].name;
    const char *near = eng_nearest(name, names, (size_t)verb->n_options);
    return ENG_FAIL(err, ENG_USAGE, "%s: unknown option --%s%s%s%s", verb->name, name,
                    near ? " (did you mean --" : "", near ? near : "", near ? "?)" : "");
}

static EngStatus add_given(EngCli *cli, int option, const char *value, EngErr *err)
{
    const EngOption *o = &cli->verb->options[option];
    if (cli->n_given == ENG_CLI_MAX_ARGS) return ENG_FAIL(err, ENG_USAGE, "too many options");
    if (!o->repeat)
        for (int i = 0; i < cli->n_given; i++)
            if (cli->given[i].option == option)
                return ENG_FAIL(err, ENG_USAGE, "--%s is given twice", o->name);
    cli->given[cli->n_given++] = (Given){option, value};
    return ENG_OK;
}

/* One option at argv[*i]; moves *i past a value that stands alone. */
static EngStatus parse_option(EngCli *cli, int *i, EngErr *err)
{
    const char *arg = cli->argv[*i], *value = NULL;
    int index = -1;
    if (arg[1] == '-') {
        char name[64];
        size_t n = strcspn(arg + 2, "=");
        snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), arg + 2);
        if (!strcmp(name, "help")) {
            cli->help = true;
            return ENG_OK;
        }
        index = find_option(cli->verb, name);
        if (index < 0) return unknown_option(cli->verb, name, err);
        if (arg[2 + n] == '=') value = arg + 3 + n;
    } else {
        for (int k = 0; k < cli->verb->n_options; k++)
            if (cli->verb->options[k].letter && cli->verb->options[k].letter == arg[1]) index = k;
        if (index < 0 && !strcmp(arg, "-h")) {
            cli->help = true;
            return ENG_OK;
        }
        if (index < 0)
            return ENG_FAIL(err, ENG_USAGE, "%s: unknown option %s", cli->verb->name, arg);
        if (arg[2]) value = arg + 2;
    }
    const EngOption *o = &cli->verb->options[index];
    if (!o->value) {
        if (value) return ENG_FAIL(err, ENG_USAGE, "--%s takes no value", o->name);
        return add_given(cli, index, "", err);
    }
    if (!value) {
        if (*i + 1 >= cli->argc)
            return ENG_FAIL(err, ENG_USAGE, "--%s needs a value (%s)", o->name, o->value);
        value = cli->argv[++*i];
    }
    return add_given(cli, index, value, err);
}

static EngStatus parse(EngCli *cli, EngErr *err)
{
    bool options = true; /* until "--" */
    for (int i = 2; i < cli->argc; i++) {
        const char *arg = cli->argv[i];
        if (options && !strcmp(arg, "--")) {
            options = false;
            continue;
        }
        if (options && arg[0] == '-' && arg[1]) {
            EngStatus status = parse_option(cli, &i, err);
            if (status) return status;
            continue;
        }
        if (cli->n_operands >= cli->verb->max_operands || cli->n_operands == ENG_CLI_MAX_ARGS)
            return ENG_FAIL(err, ENG_USAGE, "%s: unexpected argument '%s'", cli->verb->name, arg);
        cli->operands[cli->n_operands++] = arg;
    }
    return ENG_OK;
}

EngStatus eng_cli_check_writable(const EngCli *cli, const char *option, EngErr *err)
{
    const char *path = eng_cli_text(cli, option), *slash = path ? strrchr(path, '/') : NULL;
    EngWriter writer;
    EngStr folder = {0};
    if (!path) return ENG_OK;
    if (!*path) return ENG_FAIL(err, ENG_USAGE, "--%s: names no file", option);
    if (slash > path) eng_str_add_n(&folder, path, (size_t)(slash - path));
    EngStatus status = eng_str_status(&folder, err);
    if (!status && folder.text) status = eng_make_dirs(folder.text, err);
    if (!status) status = eng_writer_open(&writer, path, err);
    if (!status)
        eng_writer_close(&writer);
    else
        eng_err_prefix(err, "--%s", option);
    eng_str_free(&folder);
    return status;
}

static const EngVerb *find_verb(const char *name, EngErr *err)
{
    const char *names[64];
    size_t n = 0;
    for (; eng_verbs[n]; n++) {
        if (!strcmp(eng_verbs[n]->name, name)) return eng_verbs[n];
        names[n] = eng_verbs[n]->name;
    }
    const char *near = eng_nearest(name, names, n);
    ENG_FAIL(err, ENG_USAGE, "unknown verb '%s'%s%s%s; `engram --help` lists them", name,
             near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
    return NULL;
}

static int report(const EngErr *err)
{
    eng_error("engram", "%s", err->text);
    return eng_status_exit_code(err->status);
}

/* A full disk or closed pipe behind stdout must not look like success. */
static int finish(int code)
{
    EngErr err = {0};
    if (!fflush(stdout) && !ferror(stdout)) return code;
    ENG_FAIL(&err, ENG_IO, "standard output: cannot write");
    return report(&err);
}

/* A caller may have closed the standard streams: the next file opened, a database or a pipe, would
 * take the number and get our messages. Writing to such a stdout still fails. */
static void hold_standard_streams(void)
{
    static const int flags[] = {O_RDONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags[fd]) != fd) return;
}

int eng_cli_main(int argc, char **argv)
{
    EngErr err = {0};
    hold_standard_streams();
    signal(SIGXFSZ, SIG_IGN); /* a limit on file size is a write error like a full disk */
    const char *first = argc > 1 ? argv[1] : "--help";
    bool help = !strcmp(first, "--help") || !strcmp(first, "-h") || !strcmp(first, "help");
    if (!strcmp(first, "--version")) return puts("engram " ENG_VERSION), finish(0);
    if (help && argc <= 2) {
        print_overview(argc > 1 ? stdout : stderr);
        return finish(argc > 1 ? 0 : 1);
    }
    const EngVerb *verb = find_verb(help ? argv[2] : first, &err);
    if (!verb) return report(&err);
    EngCli cli = {.verb = verb, .argc = argc, .argv = argv, .exit_code = -1};
    if (!help && parse(&cli, &err)) return report(&err);
    if (help || cli.help) {
        print_verb(verb, stdout);
        return finish(0);
    }
    EngStatus status = verb->run(&cli, &err);
    if (status) return report(&err);
    return finish(cli.exit_code < 0 ? 0 : cli.exit_code);
}
