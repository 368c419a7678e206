// The class `ParlorHandle` of Godot: how it is registered, and how its methods are called.
//
// gdextension_interface.h is the engine's own: `godot --headless --dump-gdextension-interface` writes it. What is used of
// it is in Godot 4.3 and later ones.

#include "glue.h"

#include <gdextension_interface.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

/// Room for a Variant, a String, a StringName or a PackedByteArray. The largest is a Variant in builds with doubles.
typedef union {
    uint8_t bytes[40];
    void *aligned;
} opaque;

/// Functions of the engine.
static struct {
    GDExtensionInterfaceClassdbConstructObject construct_object;
    GDExtensionInterfaceObjectSetInstance set_instance;
    GDExtensionInterfaceClassdbRegisterExtensionClass3 register_class;
    GDExtensionInterfaceClassdbRegisterExtensionClassMethod register_method;
    GDExtensionInterfaceClassdbUnregisterExtensionClass unregister_class;
    GDExtensionInterfaceStringNameNewWithLatin1Chars new_name;
    GDExtensionInterfaceStringNewWithUtf8CharsAndLen new_string;
    GDExtensionInterfaceStringToUtf8Chars string_to_utf8;
    GDExtensionInterfacePackedByteArrayOperatorIndex byte_at;
    GDExtensionInterfaceVariantDestroy destroy;
    GDExtensionInterfaceVariantGetType type_of;
    GDExtensionInterfaceVariantCall call;
    GDExtensionInterfacePrintErrorWithMessage print_error;
    GDExtensionVariantFromTypeConstructorFunc from_bool, from_int, from_real, from_string, from_bytes;
    GDExtensionTypeFromVariantConstructorFunc to_bool, to_int, to_real, to_string, to_bytes;
    GDExtensionPtrConstructor new_bytes, new_empty_string;
    GDExtensionPtrDestructor destroy_name, destroy_string, destroy_bytes;
} godot;

static GDExtensionClassLibraryPtr library;
static opaque class_name, parent_name, size_name, resize_name;

/// An object of the class.
struct handle {
    parlor_room room;
};

// Values.

/// Reads a text.
static bool read_text(GDExtensionConstVariantPtr variant, struct value *value) {
    opaque string;
    godot.to_string(&string, (GDExtensionVariantPtr)variant);
    GDExtensionInt length = godot.string_to_utf8(&string, NULL, 0);
    value->kind = TEXT;
    value->length = (size_t)length;
    value->data = malloc((size_t)length + 1);
    if (value->data) {
        godot.string_to_utf8(&string, (char *)value->data, length);
        value->data[length] = 0;
    }
    godot.destroy_string(&string);
    return value->data != NULL;
}

/// Reads bytes.
static bool read_bytes(GDExtensionConstVariantPtr variant, struct value *value) {
    GDExtensionCallError error;
    opaque size, bytes;
    int64_t length = 0;
    godot.call((GDExtensionVariantPtr)variant, &size_name, NULL, 0, &size, &error);
    godot.to_int(&length, &size);
    godot.destroy(&size);
    value->kind = BYTES;
    value->length = (size_t)length;
    value->data = malloc(length ? (size_t)length : 1);
    if (value->data && length) {
        godot.to_bytes(&bytes, (GDExtensionVariantPtr)variant);
        memcpy(value->data, godot.byte_at(&bytes, 0), (size_t)length);
        godot.destroy_bytes(&bytes);
    }
    return value->data != NULL;
}

/// Reads an argument. `*expected` is the type that was wanted, if it is of another one.
static bool read_argument(char letter, GDExtensionConstVariantPtr variant, struct value *value, int32_t *expected) {
    GDExtensionVariantType type = godot.type_of(variant);
    switch (letter) {
    case 'i':
        *expected = GDEXTENSION_VARIANT_TYPE_INT;
        value->kind = INTEGER;
        if (type == GDEXTENSION_VARIANT_TYPE_BOOL) {
            GDExtensionBool is_so;
            godot.to_bool(&is_so, (GDExtensionVariantPtr)variant);
            value->integer = is_so;
            return true;
        }
        if (type != GDEXTENSION_VARIANT_TYPE_INT) return false;
        godot.to_int(&value->integer, (GDExtensionVariantPtr)variant);
        return true;
    case 'r':
        *expected = GDEXTENSION_VARIANT_TYPE_FLOAT;
        if (type != GDEXTENSION_VARIANT_TYPE_FLOAT) return false;
        value->kind = REAL;
        godot.to_real(&value->real, (GDExtensionVariantPtr)variant);
        return true;
    case 'b':
        *expected = GDEXTENSION_VARIANT_TYPE_PACKED_BYTE_ARRAY;
        return type == GDEXTENSION_VARIANT_TYPE_PACKED_BYTE_ARRAY && read_bytes(variant, value);
    default:
        *expected = GDEXTENSION_VARIANT_TYPE_STRING;
        if (letter == 'T' && type == GDEXTENSION_VARIANT_TYPE_NIL) return true;
        return type == GDEXTENSION_VARIANT_TYPE_STRING && read_text(variant, value);
    }
}

/// Writes bytes into a Variant that is not there yet.
static void write_bytes(const struct value *value, GDExtensionUninitializedVariantPtr to) {
    GDExtensionCallError error;
    opaque bytes, length, done;
    int64_t size = (int64_t)value->length;
    godot.new_bytes(&bytes, NULL);
    godot.from_bytes(to, &bytes);
    godot.destroy_bytes(&bytes);
    if (size == 0) return;
    godot.from_int(&length, &size);
    const GDExtensionConstVariantPtr arguments[] = {&length};
    godot.call(to, &resize_name, arguments, 1, &done, &error);
    godot.destroy(&done);
    godot.destroy(&length);
    // An array is shared until it is written to, so the one that is written to becomes the Variant.
    godot.to_bytes(&bytes, to);
    godot.destroy(to);
    memcpy(godot.byte_at(&bytes, 0), value->data, value->length);
    godot.from_bytes(to, &bytes);
    godot.destroy_bytes(&bytes);
}

/// Writes a result into a Variant that is not there yet: true where there is no more than that it is done.
static void write_result(const struct value *value, GDExtensionUninitializedVariantPtr to) {
    GDExtensionBool is_done = 1;
    opaque string;
    switch (value->kind) {
    case NOTHING: godot.from_bool(to, &is_done); break;
    case INTEGER: godot.from_int(to, (void *)&value->integer); break;
    case REAL: godot.from_real(to, (void *)&value->real); break;
    case TEXT:
        godot.new_string(&string, (const char *)value->data, (GDExtensionInt)value->length);
        godot.from_string(to, &string);
        godot.destroy_string(&string);
        break;
    case BYTES: write_bytes(value, to); break;
    }
}

// Calls.

/// Calls a method: null where there is nothing, and after an error, which is printed.
static void call_method(void *userdata, GDExtensionClassInstancePtr instance, const GDExtensionConstVariantPtr *arguments,
                        GDExtensionInt count, GDExtensionVariantPtr to, GDExtensionCallError *error) {
    const struct method *method = userdata;
    struct handle *handle = instance;
    struct value given[ARGUMENTS_MAX] = {0}, result = {0};
    GDExtensionInt wanted = (GDExtensionInt)strlen(method->arguments);
    // Godot gives a Variant that is null, and takes the result in its place.
    if (count != wanted) {
        error->error = count < wanted ? GDEXTENSION_CALL_ERROR_TOO_FEW_ARGUMENTS : GDEXTENSION_CALL_ERROR_TOO_MANY_ARGUMENTS;
        error->expected = (int32_t)wanted;
        return;
    }
    error->error = GDEXTENSION_CALL_OK;
    for (GDExtensionInt at = 0; at < count && error->error == GDEXTENSION_CALL_OK; at++) {
        if (!read_argument(method->arguments[at], arguments[at], &given[at], &error->expected)) {
            error->error = GDEXTENSION_CALL_ERROR_INVALID_ARGUMENT;
            error->argument = (int32_t)at;
        }
    }
    if (error->error == GDEXTENSION_CALL_OK) {
        parlor_result done = method->run(&handle->room, given, &result);
        if (done == PARLOR_OK) {
            godot.destroy(to);
            write_result(&result, to);
        } else if (done < 0) {
            godot.print_error(parlor_last_error_code(), parlor_last_error_message(), method->name, "parlor", 0, 1);
        }
    }
    for (size_t at = 0; at < ARGUMENTS_MAX; at++) free(given[at].data);
    free(result.data);
}

static GDExtensionObjectPtr create(void *userdata) {
    (void)userdata;
    struct handle *handle = malloc(sizeof *handle);
    if (!handle) return NULL;
    handle->room = PARLOR_NO_ROOM;
    GDExtensionObjectPtr object = godot.construct_object(&parent_name);
    godot.set_instance(object, &class_name, handle);
    return object;
}

/// A room that was not left is left.
static void destroy(void *userdata, GDExtensionClassInstancePtr instance) {
    (void)userdata;
    struct handle *handle = instance;
    if (handle->room != PARLOR_NO_ROOM) parlor_leave(handle->room);
    free(handle);
}

// Registration.

static void register_methods(void) {
    opaque empty_name, empty_text;
    godot.new_name(&empty_name, "", 0);
    godot.new_empty_string(&empty_text, NULL);
    // PROPERTY_USAGE_DEFAULT and PROPERTY_USAGE_NIL_IS_VARIANT: any value.
    GDExtensionPropertyInfo any = {
        .type = GDEXTENSION_VARIANT_TYPE_NIL, .name = &empty_name, .class_name = &empty_name, .hint_string = &empty_text, .usage = 6 | 1 << 17};
    for (size_t at = 0; at < METHOD_COUNT; at++) {
        opaque name;
        godot.new_name(&name, METHODS[at].name, 0);
        // Their arguments are counted and read by the glue, so that each has one way in.
        GDExtensionClassMethodInfo info = {
            .name = &name,
            .method_userdata = (void *)&METHODS[at],
            .call_func = call_method,
            .method_flags = GDEXTENSION_METHOD_FLAG_NORMAL | GDEXTENSION_METHOD_FLAG_VARARG,
            .has_return_value = 1,
            .return_value_info = &any,
        };
        godot.register_method(library, &class_name, &info);
        godot.destroy_name(&name);
    }
    godot.destroy_string(&empty_text);
    godot.destroy_name(&empty_name);
}

static void initialize(void *userdata, GDExtensionInitializationLevel level) {
    (void)userdata;
    if (level != GDEXTENSION_INITIALIZATION_SCENE) return;
    godot.new_name(&class_name, "ParlorHandle", 0);
    godot.new_name(&parent_name, "RefCounted", 0);
    godot.new_name(&size_name, "size", 0);
    godot.new_name(&resize_name, "resize", 0);
    GDExtensionClassCreationInfo3 class = {.is_exposed = 1, .create_instance_func = create, .free_instance_func = destroy};
    godot.register_class(library, &class_name, &parent_name, &class);
    register_methods();
}

static void deinitialize(void *userdata, GDExtensionInitializationLevel level) {
    (void)userdata;
    if (level != GDEXTENSION_INITIALIZATION_SCENE) return;
    godot.unregister_class(library, &class_name);
    opaque *names[] = {&class_name, &parent_name, &size_name, &resize_name};
    for (size_t at = 0; at < sizeof names / sizeof *names; at++) godot.destroy_name(names[at]);
}

/// What the engine calls first: see parlor.gdextension. Refuses an engine that lacks a function.
EXPORTED GDExtensionBool parlor_godot_init(GDExtensionInterfaceGetProcAddress get, GDExtensionClassLibraryPtr of,
                                  GDExtensionInitialization *initialization) {
    library = of;
    GDExtensionInterfaceGetVariantFromTypeConstructor from;
    GDExtensionInterfaceGetVariantToTypeConstructor to;
    GDExtensionInterfaceVariantGetPtrConstructor make;
    GDExtensionInterfaceVariantGetPtrDestructor end;
    const struct {
        const char *name;
        void *field;
    } functions[] = {
        {"classdb_construct_object", &godot.construct_object},
        {"object_set_instance", &godot.set_instance},
        {"classdb_register_extension_class3", &godot.register_class},
        {"classdb_register_extension_class_method", &godot.register_method},
        {"classdb_unregister_extension_class", &godot.unregister_class},
        {"string_name_new_with_latin1_chars", &godot.new_name},
        {"string_new_with_utf8_chars_and_len", &godot.new_string},
        {"string_to_utf8_chars", &godot.string_to_utf8},
        {"packed_byte_array_operator_index", &godot.byte_at},
        {"variant_destroy", &godot.destroy},
        {"variant_get_type", &godot.type_of},
        {"variant_call", &godot.call},
        {"print_error_with_message", &godot.print_error},
        {"get_variant_from_type_constructor", &from},
        {"get_variant_to_type_constructor", &to},
        {"variant_get_ptr_constructor", &make},
        {"variant_get_ptr_destructor", &end},
    };
    if (parlor_abi_version() != PARLOR_ABI_VERSION) return 0;
    for (size_t at = 0; at < sizeof functions / sizeof *functions; at++) {
        GDExtensionInterfaceFunctionPtr function = get(functions[at].name);
        if (!function) return 0;
        memcpy(functions[at].field, &function, sizeof function);
    }
    godot.from_bool = from(GDEXTENSION_VARIANT_TYPE_BOOL);
    godot.from_int = from(GDEXTENSION_VARIANT_TYPE_INT);
    godot.from_real = from(GDEXTENSION_VARIANT_TYPE_FLOAT);
    godot.from_string = from(GDEXTENSION_VARIANT_TYPE_STRING);
    godot.from_bytes = from(GDEXTENSION_VARIANT_TYPE_PACKED_BYTE_ARRAY);
    godot.to_bool = to(GDEXTENSION_VARIANT_TYPE_BOOL);
    godot.to_int = to(GDEXTENSION_VARIANT_TYPE_INT);
    godot.to_real = to(GDEXTENSION_VARIANT_TYPE_FLOAT);
    godot.to_string = to(GDEXTENSION_VARIANT_TYPE_STRING);
    godot.to_bytes = to(GDEXTENSION_VARIANT_TYPE_PACKED_BYTE_ARRAY);
    godot.new_bytes = make(GDEXTENSION_VARIANT_TYPE_PACKED_BYTE_ARRAY, 0);
    godot.new_empty_string = make(GDEXTENSION_VARIANT_TYPE_STRING, 0);
    godot.destroy_name = end(GDEXTENSION_VARIANT_TYPE_STRING_NAME);
    godot.destroy_string = end(GDEXTENSION_VARIANT_TYPE_STRING);
    godot.destroy_bytes = end(GDEXTENSION_VARIANT_TYPE_PACKED_BYTE_ARRAY);
    *initialization = (GDExtensionInitialization){
        .minimum_initialization_level = GDEXTENSION_INITIALIZATION_SCENE, .initialize = initialize, .deinitialize = deinitialize};
    return 1;
}
