/* SPDX-License-Identifier: MIT
 *
 * Status codes. Every call that can fail returns one, and leaves a message:
 *
 *     if (iris_malloc(iris, bytes, &ptr) != IRIS_OK) {
 *         fprintf(stderr, "%s\n", iris_last_error());
 *     }
 *
 * One table below generates the enum, the names and the texts.
 *
 * @use local; never blocks; apart
 * @param status  a status, also one that does not exist
 */
#ifndef IRIS_STATUS_H
#define IRIS_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a symbol of the public interface. */
#define IRIS_API __attribute__((visibility("default")))

/* X(name, value, text): IRIS_<name> == value. Values never change meaning. */
/* clang-format off */
#define IRIS_STATUS_ROWS(X)                                                    \
    X(OK,                0, "success")                                         \
    X(ERR_INVALID,      -1, "invalid argument")                                \
    X(ERR_NO_MEMORY,    -2, "out of memory")                                   \
    X(ERR_UNSUPPORTED,  -3, "not supported by this backend or build")          \
    X(ERR_BACKEND,      -4, "backend unknown or unusable")                     \
    X(ERR_CONFIG,       -5, "configuration value does not parse")              \
    X(ERR_BOOTSTRAP,    -6, "ranks could not meet")                            \
    X(ERR_UNREACHABLE,  -7, "rank has no mapping here")                        \
    X(ERR_PEER_LOST,    -8, "a peer rank died or left")                        \
    X(ERR_TIMEOUT,      -9, "deadline passed")                                 \
    X(ERR_MISMATCH,    -10, "ranks made different collective calls")           \
    X(ERR_STATE,       -11, "not usable in this state")                        \
    X(ERR_LIMIT,       -12, "a system limit was reached")                      \
    X(ERR_SYSTEM,      -13, "a system call failed")                            \
    X(ERR_DEVICE,      -14, "the GPU failed")                                  \
    X(ERR_INTERRUPTED, -15, "a wait was interrupted")                          \
    X(ERR_RACE,        -16, "a data race was found")                           \
    X(ERR_REVOKED,     -17, "the job was revoked")
/* clang-format on */

/** The result of every call that can fail. 0 is success; errors are negative. */
typedef enum iris_status {
#define IRIS_STATUS_ENUM(name, value, text) IRIS_##name = value,
    IRIS_STATUS_ROWS(IRIS_STATUS_ENUM)
#undef IRIS_STATUS_ENUM
} iris_status_t;

/** Name of a status, such as "IRIS_ERR_TIMEOUT". Never NULL; the string is
 *  static. An unknown value gives "IRIS_ERR_?". */
IRIS_API const char *iris_status_string(iris_status_t status);

/** One-line meaning of a status, such as "deadline passed". Never NULL; the
 *  string is static. */
IRIS_API const char *iris_status_text(iris_status_t status);

/** Full message of this thread's last failed call. It names the call, the rank
 *  and the argument, and says what to do. "" if no call has failed. The library
 *  owns the string, which stays valid until this thread's next failure. */
IRIS_API const char *iris_last_error(void);

/** Version of the library that the program runs with, such as "0.1.0". Never
 *  NULL; the string is static. */
IRIS_API const char *iris_version(void);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_STATUS_H */
