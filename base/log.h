/* Log to standard error: "level module: text", always one line: control characters of
 * names from outside become '?'. Standard output belongs to data. The level is the
 * one global of the library besides the backend table; main sets it once. */
#ifndef ENG_BASE_LOG_H
#define ENG_BASE_LOG_H

typedef enum EngLogLevel {
    ENG_LOG_ERROR = 0,
    ENG_LOG_WARN,
    ENG_LOG_INFO,
    ENG_LOG_DEBUG
} EngLogLevel;

void eng_log_set_level(EngLogLevel level);
void eng_log(EngLogLevel level, const char *module, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define eng_error(module, ...) eng_log(ENG_LOG_ERROR, (module), __VA_ARGS__)
#define eng_warn(module, ...)  eng_log(ENG_LOG_WARN, (module), __VA_ARGS__)
#define eng_info(module, ...)  eng_log(ENG_LOG_INFO, (module), __VA_ARGS__)
#define eng_debug(module, ...) eng_log(ENG_LOG_DEBUG, (module), __VA_ARGS__)

#endif
