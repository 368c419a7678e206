// Between Godot's values and those of the C functions.

#ifndef PARLOR_GODOT_GLUE_H
#define PARLOR_GODOT_GLUE_H

#include "parlor.h"

/// What a value is.
enum kind { NOTHING, INTEGER, REAL, TEXT, BYTES };

/// An argument, or a result. Text and bytes are on the heap, and freed by the glue.
struct value {
    enum kind kind;
    int64_t integer;
    double real;
    /// Text with its NUL, or bytes; NULL for no text.
    uint8_t *data;
    size_t length;
};

/// A method of the class `ParlorHandle`.
struct method {
    const char *name;
    /// A letter for each argument: i int, r float, t String, T String or null, b PackedByteArray.
    const char *arguments;
    parlor_result (*run)(parlor_room *room, const struct value *given, struct value *result);
};

extern const struct method METHODS[];
extern const size_t METHOD_COUNT;

/// Arguments that a method has at most.
enum { ARGUMENTS_MAX = 8 };

#endif
