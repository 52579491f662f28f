/* Parser and evaluator of `where` expressions; see where.h. A recursive descent builds a tree whose
 * nodes know their type, so that evaluation has only overflow and division by zero left to report.
 */
#include "bench/core/where.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "bench/core/sweep.h"

#define MAX_DEPTH 100 /* of nesting: the parser recurses */

typedef enum Type { T_INT = 0, T_REAL, T_WORD, T_BOOL } Type;

typedef enum Op {
    OP_CONSTANT = 0,
    OP_AXIS,
    OP_NOT,
    OP_NEGATE,
    OP_OR,
    OP_AND,
    OP_EQ,
    OP_NE,
    OP_LE,
    OP_GE,
    OP_LT,
    OP_GT,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MOD
} Op;

typedef struct Node {
    Op op;
    Type type;
    int column; /* of the operator or operand, from 1 */
    int axis;
    EngValue constant;
    struct Node *a, *b;
} Node;

struct EngWhere {
    Node *root;
};

typedef struct Parser {
    const char *text, *at;
    const EngExperiment *experiment;
    EngArena *arena;
    EngErr *err;
    EngStatus status;
    int depth;
} Parser;

static const char *const type_names[] = {"an integer", "a real", "a word", "a condition"};

/* Operators by level, the loosest first; longer spellings before their prefixes. */
static const struct {
    const char *text;
    Op op;
    int level;
} operators[] = {
    {"||", OP_OR, 0}, {"&&", OP_AND, 1}, {"==", OP_EQ, 2}, {"!=", OP_NE, 2}, {"<=", OP_LE, 3},
    {">=", OP_GE, 3}, {"<", OP_LT, 3},   {">", OP_GT, 3},  {"+", OP_ADD, 4}, {"-", OP_SUB, 4},
    {"*", OP_MUL, 5}, {"/", OP_DIV, 5},  {"%", OP_MOD, 5},
};
#define N_OPERATORS ((int)(sizeof operators / sizeof *operators))
#define LEVELS      6

static Node *fail(Parser *parser, const char *where, const char *what, const char *detail)
{
    if (!parser->status)
        parser->status = ENG_FAIL(parser->err, ENG_USAGE, "column %d: %s%s",
                                  (int)(where - parser->text) + 1, what, detail);
    return NULL;
}

static Node *new_node(Parser *parser, Op op, Type type, const char *where)
{
    Node *node = eng_arena_alloc(parser->arena, sizeof *node);
    if (!node) {
        parser->status = ENG_FAIL(parser->err, ENG_NO_MEMORY, "out of memory for an expression");
        return NULL;
    }
    *node = (Node){.op = op, .type = type, .column = (int)(where - parser->text) + 1};
    return node;
}

static void skip_space(Parser *parser)
{
    while (isspace((unsigned char)*parser->at)) parser->at++;
}

static bool is_number(Type type)
{
    return type == T_INT || type == T_REAL;
}

static char *copy_token(Parser *parser, const char *start, size_t n)
{
    char *copy = eng_arena_alloc(parser->arena, n + 1);
    if (copy)
        memcpy(copy, start, n);
    else
        parser->status = ENG_FAIL(parser->err, ENG_NO_MEMORY, "out of memory for an expression");
    return copy;
}

static Node *parse_word(Parser *parser)
{
    const char *start = parser->at, quote = *start;
    const char *end = strchr(start + 1, quote);
    if (!end) return fail(parser, start, "quote is not closed", "");
    Node *node = new_node(parser, OP_CONSTANT, T_WORD, start);
    char *text = node ? copy_token(parser, start + 1, (size_t)(end - start - 1)) : NULL;
    if (!text) return NULL;
    node->constant.text = text;
    parser->at = end + 1;
    return node;
}

static Node *parse_number(Parser *parser)
{
    const char *start = parser->at, *p = start;
    while (isalnum((unsigned char)*p) || *p == '.' || *p == '^' ||
           ((*p == '+' || *p == '-') && (p[-1] == 'e' || p[-1] == 'E')))
        p++;
    char *text = copy_token(parser, start, (size_t)(p - start));
    Node *node = text ? new_node(parser, OP_CONSTANT, T_INT, start) : NULL;
    if (!node) return NULL;
    if (eng_parse_i64(text, &node->constant.i)) {
        node->constant.f = (double)node->constant.i;
    } else if (eng_parse_f64(text, &node->constant.f)) {
        node->type = T_REAL;
    } else {
        return fail(parser, start, "not a number: ", text);
    }
    parser->at = p;
    return node;
}

static Node *parse_axis(Parser *parser)
{
    const EngExperiment *experiment = parser->experiment;
    const char *start = parser->at, *p = start;
    while (isalnum((unsigned char)*p) || *p == '_') p++;
    char *name = copy_token(parser, start, (size_t)(p - start));
    if (!name) return NULL;
    int axis = eng_experiment_axis(experiment, name);
    if (axis < 0) {
        const char *names[ENG_MAX_AXES];
        for (int i = 0; i < experiment->n_axes; i++) names[i] = experiment->axes[i].name;
        const char *near = eng_nearest(name, names, (size_t)experiment->n_axes);
        parser->status = ENG_FAIL(
            parser->err, ENG_USAGE, "column %d: no axis '%s' in %s%s%s%s (words need quotes)",
            (int)(start - parser->text) + 1, name, experiment->name, near ? "; did you mean '" : "",
            near ? near : "", near ? "'?" : "");
        return NULL;
    }
    static const Type types[] = {
        [ENG_AXIS_INT] = T_INT, [ENG_AXIS_REAL] = T_REAL, [ENG_AXIS_WORD] = T_WORD};
    Node *node = new_node(parser, OP_AXIS, types[experiment->axes[axis].type], start);
    if (!node) return NULL;
    node->axis = axis;
    parser->at = p;
    return node;
}

static Node *parse_level(Parser *parser, int level);

static Node *parse_unary(Parser *parser, Op op)
{
    const char *where = parser->at++;
    skip_space(parser);
    Node *operand = parse_level(parser, LEVELS);
    if (!operand) return NULL;
    if (op == OP_NOT && operand->type != T_BOOL)
        return fail(parser, where, "! needs a condition, not ", type_names[operand->type]);
    if (op == OP_NEGATE && !is_number(operand->type))
        return fail(parser, where, "- needs a number, not ", type_names[operand->type]);
    Node *node = new_node(parser, op, operand->type, where);
    if (node) node->a = operand;
    return node;
}

static Node *parse_operand(Parser *parser)
{
    char c = *parser->at;
    if (c == '(') {
        const char *open = parser->at++;
        Node *inner = parse_level(parser, 0);
        if (!inner) return NULL;
        skip_space(parser);
        if (*parser->at != ')') return fail(parser, open, "parenthesis is not closed", "");
        parser->at++;
        return inner;
    }
    if (c == '!' && parser->at[1] != '=') return parse_unary(parser, OP_NOT);
    if (c == '-') return parse_unary(parser, OP_NEGATE);
    if (c == '"' || c == '\'') return parse_word(parser);
    if (isdigit((unsigned char)c) || c == '.') return parse_number(parser);
    if (isalpha((unsigned char)c) || c == '_') return parse_axis(parser);
    if (!c) return fail(parser, parser->at, "something is missing at the end", "");
    char text[2] = {c, 0};
    return fail(parser, parser->at, "unexpected ", text);
}

/* The operator of this level at the cursor, or -1. */
static int operator_at(const Parser *parser, int level)
{
    for (int i = 0; i < N_OPERATORS; i++) {
        size_t n = strlen(operators[i].text);
        if (!strncmp(parser->at, operators[i].text, n)) return operators[i].level == level ? i : -1;
    }
    return -1;
}

/* Type of `a op b`, or a failure that says what does not fit. */
static bool combine(Parser *parser, const char *where, int which, const Node *a, const Node *b,
                    Type *type)
{
    Op op = operators[which].op;
    bool numbers = is_number(a->type) && is_number(b->type);
    bool words = a->type == T_WORD && b->type == T_WORD;
    bool fits = numbers;
    *type = T_BOOL;
    if (op == OP_OR || op == OP_AND)
        fits = a->type == T_BOOL && b->type == T_BOOL;
    else if (op == OP_EQ || op == OP_NE)
        fits = numbers || words;
    else if (op == OP_MOD)
        fits = a->type == T_INT && b->type == T_INT;
    if (op >= OP_ADD) *type = a->type == T_REAL || b->type == T_REAL ? T_REAL : T_INT;
    if (fits) return true;
    if (!parser->status)
        parser->status = ENG_FAIL(parser->err, ENG_USAGE, "column %d: %s cannot join %s and %s",
                                  (int)(where - parser->text) + 1, operators[which].text,
                                  type_names[a->type], type_names[b->type]);
    return false;
}

static Node *parse_level(Parser *parser, int level)
{
    if (++parser->depth > MAX_DEPTH * LEVELS)
        return fail(parser, parser->at, "nested too deeply", "");
    skip_space(parser);
    Node *left = level == LEVELS ? parse_operand(parser) : parse_level(parser, level + 1);
    while (left && level < LEVELS) {
        skip_space(parser);
        const char *where = parser->at;
        int which = operator_at(parser, level);
        if (which < 0) break;
        parser->at += strlen(operators[which].text);
        Node *right = parse_level(parser, level + 1);
        Type type;
        if (!right || !combine(parser, where, which, left, right, &type)) {
            left = NULL;
            break;
        }
        Node *node = new_node(parser, operators[which].op, type, where);
        if (node) {
            node->a = left;
            node->b = right;
        }
        left = node;
    }
    parser->depth--;
    return left;
}

EngStatus eng_where_parse(const char *text, const EngExperiment *experiment, EngArena *arena,
                          EngWhere **where, EngErr *err)
{
    Parser parser = {text, text, experiment, arena, err, ENG_OK, 0};
    *where = NULL;
    Node *root = parse_level(&parser, 0);
    skip_space(&parser);
    if (root && *parser.at) {
        root = fail(&parser, parser.at, "expected an operator at ", parser.at);
    } else if (root && root->type != T_BOOL) {
        root = fail(&parser, text, "the expression is no condition but ", type_names[root->type]);
    }
    if (!root) return parser.status;
    *where = eng_arena_alloc(arena, sizeof **where);
    if (!*where) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for an expression");
    (*where)->root = root;
    return ENG_OK;
}

/* ---- evaluation --------------------------------------------------------------------------------
 */

static EngStatus eval(const Node *node, const EngPoint *point, EngValue *out, EngErr *err);

/* Integer arithmetic; false on overflow or division by zero. */
static bool integer_arithmetic(Op op, int64_t a, int64_t b, int64_t *out)
{
    switch (op) {
    case OP_ADD:
        return !__builtin_add_overflow(a, b, out);
    case OP_SUB:
        return !__builtin_sub_overflow(a, b, out);
    case OP_MUL:
        return !__builtin_mul_overflow(a, b, out);
    default:
        break;
    }
    if (b == 0 || (a == INT64_MIN && b == -1)) return false;
    *out = op == OP_DIV ? a / b : a % b;
    return true;
}

static EngStatus arithmetic(const Node *node, const EngValue *a, const EngValue *b, EngValue *out,
                            EngErr *err)
{
    if (node->type == T_INT) {
        if (!integer_arithmetic(node->op, a->i, b->i, &out->i))
            return ENG_FAIL(err, ENG_USAGE, "column %d: %s", node->column,
                            b->i ? "integer overflow" : "integer overflow or division by zero");
        out->f = (double)out->i;
        return ENG_OK;
    }
    switch (node->op) {
    case OP_ADD:
        out->f = a->f + b->f;
        break;
    case OP_SUB:
        out->f = a->f - b->f;
        break;
    case OP_MUL:
        out->f = a->f * b->f;
        break;
    default:
        if (b->f == 0) return ENG_FAIL(err, ENG_USAGE, "column %d: division by zero", node->column);
        out->f = a->f / b->f;
        break;
    }
    return ENG_OK;
}

static int order_of(const Node *node, const EngValue *a, const EngValue *b)
{
    if (node->a->type == T_WORD) return strcmp(a->text, b->text);
    if (node->a->type == T_INT && node->b->type == T_INT) return (a->i > b->i) - (a->i < b->i);
    return (a->f > b->f) - (a->f < b->f);
}

/* Conditions give i = 0 or 1. */
static EngStatus eval_binary(const Node *node, const EngPoint *point, EngValue *out, EngErr *err)
{
    EngValue a, b;
    EngStatus status = eval(node->a, point, &a, err);
    if (status) return status;
    if ((node->op == OP_AND && !a.i) || (node->op == OP_OR && a.i)) {
        *out = a;
        return ENG_OK;
    }
    status = eval(node->b, point, &b, err);
    if (status) return status;
    if (node->op == OP_AND || node->op == OP_OR) {
        *out = b;
        return ENG_OK;
    }
    if (node->op >= OP_ADD) return arithmetic(node, &a, &b, out, err);
    int order = order_of(node, &a, &b);
    switch (node->op) {
    case OP_EQ:
        out->i = order == 0;
        break;
    case OP_NE:
        out->i = order != 0;
        break;
    case OP_LE:
        out->i = order <= 0;
        break;
    case OP_GE:
        out->i = order >= 0;
        break;
    case OP_LT:
        out->i = order < 0;
        break;
    default:
        out->i = order > 0;
        break;
    }
    return ENG_OK;
}

static EngStatus eval(const Node *node, const EngPoint *point, EngValue *out, EngErr *err)
{
    *out = (EngValue){0};
    switch (node->op) {
    case OP_CONSTANT:
        *out = node->constant;
        return ENG_OK;
    case OP_AXIS:
        *out = point->values[node->axis];
        return ENG_OK;
    case OP_NOT: {
        EngStatus status = eval(node->a, point, out, err);
        out->i = !out->i;
        return status;
    }
    case OP_NEGATE: {
        EngValue zero = {0}, a;
        EngStatus status = eval(node->a, point, &a, err);
        if (status) return status;
        if (node->type == T_INT && !integer_arithmetic(OP_SUB, zero.i, a.i, &out->i))
            return ENG_FAIL(err, ENG_USAGE, "column %d: integer overflow", node->column);
        out->f = -a.f;
        return ENG_OK;
    }
    default:
        return eval_binary(node, point, out, err);
    }
}

EngStatus eng_where_eval(const EngWhere *where, const EngPoint *point, bool *keep, EngErr *err)
{
    EngValue value;
    *keep = false;
    EngStatus status = eval(where->root, point, &value, err);
    if (!status) *keep = value.i != 0;
    return status;
}
