/* Text files compiled into the program by cmake/embed.cmake; lists end with a NULL name. */
#ifndef ENG_BASE_EMBEDDED_H
#define ENG_BASE_EMBEDDED_H

typedef struct EngEmbedded {
    const char *name, *text;
} EngEmbedded;

#endif
