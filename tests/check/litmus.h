/* SPDX-License-Identifier: MIT
 *
 * Litmus tests of the memory model: short programs of a few workgroups, with an
 * outcome that is forbidden or allowed (docs/memory-model.md).
 */
#ifndef IRIS_TESTS_CHECK_LITMUS_H
#define IRIS_TESTS_CHECK_LITMUS_H

#include <iris/types.h>

#define LITMUS_WORDS 4 /* x, y, f, g: 64-bit words on rank 1's heap */
#define LITMUS_REGISTERS 4
#define LITMUS_THREADS 4
#define LITMUS_STEPS 8

enum litmus_op {
    LITMUS_END,
    LITMUS_STORE, /* a plain one */
    LITMUS_LOAD,
    LITMUS_SET, /* an atomic one */
    LITMUS_GET,
    LITMUS_ADD,      /* returns the old value */
    LITMUS_EXCHANGE, /* the same */
    LITMUS_FENCE,
    LITMUS_SET_HALF, /* of 4 bytes: the word's low half */
    LITMUS_GET_HALF,
    LITMUS_WAIT,       /* until the word is `value` */
    LITMUS_PUT_SIGNAL, /* x = 1, then f = 1 */
};

struct litmus_step {
    enum litmus_op op;
    int word;
    uint64_t value;
    int reg; /* of what is read */
    iris_sem_t sem;
    iris_scope_t scope;
};

struct litmus_thread {
    int rank;
    unsigned workgroup;
    struct litmus_step steps[LITMUS_STEPS];
};

enum litmus_verdict {
    FORBIDDEN,
    ALLOWED,
    UNSEEN, /* allowed, but the weak mode does not show it */
};

struct litmus_test {
    const char *name;
    const char *what;
    enum litmus_verdict verdict;
    uint64_t outcome[LITMUS_REGISTERS]; /* LITMUS_ANY: whatever it is */
    struct litmus_thread threads[LITMUS_THREADS];
};

#define LITMUS_ANY UINT64_MAX

#ifdef __cplusplus /* for templates */
#define LITMUS_CONST constexpr
#else
#define LITMUS_CONST const
#endif

/* clang-format off */
enum { X, Y, F, G };
#define RLX IRIS_RELAXED
#define ACQ IRIS_ACQUIRE
#define REL IRIS_RELEASE
#define AR IRIS_ACQ_REL
#define WG IRIS_SCOPE_WG
#define AG IRIS_SCOPE_AGENT
#define SYS IRIS_SCOPE_SYSTEM
#define ST(word, value) {LITMUS_STORE, word, value, 0, RLX, WG}
#define LD(word, reg) {LITMUS_LOAD, word, 0, reg, RLX, WG}
#define SET(word, value, sem, scope) {LITMUS_SET, word, value, 0, sem, scope}
#define GET(word, reg, sem, scope) {LITMUS_GET, word, 0, reg, sem, scope}
#define ADD(word, value, reg, sem, scope) {LITMUS_ADD, word, value, reg, sem, scope}
#define XCHG(word, value, reg, sem, scope) {LITMUS_EXCHANGE, word, value, reg, sem, scope}
#define FENCE(sem, scope) {LITMUS_FENCE, 0, 0, 0, sem, scope}
#define SET4(word, value, sem) {LITMUS_SET_HALF, word, value, 0, sem, SYS}
#define GET4(word, reg, sem) {LITMUS_GET_HALF, word, 0, reg, sem, SYS}
#define WAIT(word, value) {LITMUS_WAIT, word, value, 0, ACQ, SYS}
#define PUT_SIGNAL {LITMUS_PUT_SIGNAL, 0, 1, 0, REL, SYS}
#define RANK(rank, ...) {rank, 0, {__VA_ARGS__}}
#define GROUP(rank, workgroup, ...) {rank, workgroup, {__VA_ARGS__}}
#define NO LITMUS_ANY
#define R1(a) {a, NO, NO, NO}
#define R2(a, b) {a, b, NO, NO}
#define R3(a, b, c) {a, b, c, NO}
#define R4(a, b, c, d) {a, b, c, d}

static LITMUS_CONST struct litmus_test litmus_tests[] = {
    {"MP", "message passing, release and acquire", FORBIDDEN, R2(1, 0),
     {RANK(0, ST(X, 1), SET(F, 1, REL, SYS)),
      RANK(1, GET(F, 0, ACQ, SYS), LD(X, 1))}},
    {"MP+relaxed", "the same without release", ALLOWED, R2(1, 0),
     {RANK(0, ST(X, 1), SET(F, 1, RLX, SYS)),
      RANK(1, GET(F, 0, ACQ, SYS), LD(X, 1))}},
    {"MP+unacquired", "the same without acquire", ALLOWED, R2(1, 0),
     {RANK(0, ST(X, 1), SET(F, 1, REL, SYS)),
      RANK(1, GET(F, 0, RLX, SYS), LD(X, 1))}},
    {"MP+agent", "the same, released at agent scope to another rank", ALLOWED, R2(1, 0),
     {RANK(0, ST(X, 1), SET(F, 1, REL, AG)),
      RANK(1, GET(F, 0, ACQ, SYS), LD(X, 1))}},
    {"MP+agent+workgroups", "released at agent scope to another workgroup", FORBIDDEN, R2(1, 0),
     {GROUP(1, 0, ST(X, 1), SET(F, 1, REL, AG)),
      GROUP(1, 1, GET(F, 0, ACQ, AG), LD(X, 1))}},
    {"MP+wg+workgroups", "released at workgroup scope to another workgroup", ALLOWED, R2(1, 0),
     {GROUP(1, 0, ST(X, 1), SET(F, 1, REL, WG)),
      GROUP(1, 1, GET(F, 0, ACQ, AG), LD(X, 1))}},
    {"MP+fences", "fences around relaxed atomics", FORBIDDEN, R2(1, 0),
     {RANK(0, ST(X, 1), FENCE(REL, SYS), SET(F, 1, RLX, SYS)),
      RANK(1, GET(F, 0, RLX, SYS), FENCE(ACQ, SYS), LD(X, 1))}},
    {"MP+fence.agent", "the release fence at agent scope", ALLOWED, R2(1, 0),
     {RANK(0, ST(X, 1), FENCE(REL, AG), SET(F, 1, RLX, SYS)),
      RANK(1, GET(F, 0, RLX, SYS), FENCE(ACQ, SYS), LD(X, 1))}},
    {"MP+wait", "a signal and a wait", FORBIDDEN, R1(0),
     {RANK(0, ST(X, 1), SET(F, 1, REL, SYS)),
      RANK(1, WAIT(F, 1), LD(X, 0))}},
    {"MP+put_signal", "put_signal and a wait", FORBIDDEN, R1(0),
     {RANK(0, PUT_SIGNAL), RANK(1, WAIT(F, 1), LD(X, 0))}},
    {"MP+update", "an update in between keeps the chain", FORBIDDEN, R3(1, 2, 0),
     {RANK(0, ST(X, 1), SET(F, 1, REL, SYS)),
      RANK(1, ADD(F, 1, 0, RLX, SYS)),
      RANK(2, GET(F, 1, ACQ, SYS), LD(X, 2))}},
    {"MP+store", "a store in between breaks the chain", ALLOWED, R3(1, 2, 0),
     {RANK(0, ST(X, 1), SET(F, 1, REL, SYS)),
      RANK(1, GET(F, 0, RLX, SYS), SET(F, 2, RLX, SYS)),
      RANK(2, GET(F, 1, ACQ, SYS), LD(X, 2))}},
    {"ISA2", "three ranks", FORBIDDEN, R3(1, 1, 0),
     {RANK(0, ST(X, 1), SET(F, 1, REL, SYS)),
      RANK(1, GET(F, 0, ACQ, SYS), SET(G, 1, REL, SYS)),
      RANK(2, GET(G, 1, ACQ, SYS), LD(X, 2))}},
    {"ISA2+relaxed", "the same, where the one between releases nothing", ALLOWED, R3(1, 1, 0),
     {RANK(0, ST(X, 1), SET(F, 1, REL, SYS)),
      RANK(1, GET(F, 0, ACQ, SYS), SET(G, 1, RLX, SYS)),
      RANK(2, GET(G, 1, ACQ, SYS), LD(X, 2))}},
    {"WRC", "a reader passes a write on", FORBIDDEN, R3(1, 1, 0),
     {RANK(0, SET(X, 1, RLX, SYS)),
      RANK(1, GET(X, 0, RLX, SYS), SET(F, 1, REL, SYS)),
      RANK(2, GET(F, 1, ACQ, SYS), GET(X, 2, RLX, SYS))}},
    {"two signals", "the second signal releases the first", FORBIDDEN, R2(1, 0),
     {RANK(0, SET(F, 1, REL, SYS), SET(G, 1, REL, SYS)),
      RANK(1, GET(G, 0, ACQ, SYS), GET(F, 1, ACQ, SYS))}},
    {"SB", "store buffering", ALLOWED, R2(0, 0),
     {RANK(0, SET(X, 1, REL, SYS), GET(Y, 0, ACQ, SYS)),
      RANK(1, SET(Y, 1, REL, SYS), GET(X, 1, ACQ, SYS))}},
    {"SB+fences", "store buffering with fences", ALLOWED, R2(0, 0),
     {RANK(0, SET(X, 1, RLX, SYS), FENCE(AR, SYS), GET(Y, 0, RLX, SYS)),
      RANK(1, SET(Y, 1, RLX, SYS), FENCE(AR, SYS), GET(X, 1, RLX, SYS))}},
    {"SB+updates", "store buffering of updates", FORBIDDEN, R4(0, NO, 0, NO),
     {RANK(0, XCHG(X, 1, 1, AR, SYS), ADD(Y, 0, 0, AR, SYS)),
      RANK(1, XCHG(Y, 1, 3, AR, SYS), ADD(X, 0, 2, AR, SYS))}},
    {"LB+acquire", "load buffering, release and acquire", FORBIDDEN, R2(1, 1),
     {RANK(0, GET(X, 0, ACQ, SYS), SET(Y, 1, REL, SYS)),
      RANK(1, GET(Y, 1, ACQ, SYS), SET(X, 1, REL, SYS))}},
    {"LB", "load buffering, relaxed", UNSEEN, R2(1, 1),
     {RANK(0, GET(X, 0, RLX, SYS), SET(Y, 1, RLX, SYS)),
      RANK(1, GET(Y, 1, RLX, SYS), SET(X, 1, RLX, SYS))}},
    {"IRIW", "two readers, two writers", ALLOWED, R4(1, 0, 1, 0),
     {RANK(0, SET(X, 1, REL, SYS)), RANK(1, SET(Y, 1, REL, SYS)),
      RANK(2, GET(X, 0, ACQ, SYS), GET(Y, 1, ACQ, SYS)),
      RANK(3, GET(Y, 2, ACQ, SYS), GET(X, 3, ACQ, SYS))}},
    {"CoRR", "one location: two reads", FORBIDDEN, R2(1, 0),
     {RANK(0, SET(X, 1, RLX, SYS)),
      RANK(1, GET(X, 0, RLX, SYS), GET(X, 1, RLX, SYS))}},
    {"CoRR2", "one location: two readers, two writers", FORBIDDEN, R4(1, 2, 2, 1),
     {RANK(0, SET(X, 1, RLX, SYS)), RANK(1, SET(X, 2, RLX, SYS)),
      RANK(2, GET(X, 0, RLX, SYS), GET(X, 1, RLX, SYS)),
      RANK(3, GET(X, 2, RLX, SYS), GET(X, 3, RLX, SYS))}},
    {"CoWW", "one location: two writes of one lane", FORBIDDEN, R2(2, 1),
     {RANK(0, SET(X, 1, RLX, SYS), SET(X, 2, RLX, SYS)),
      RANK(1, GET(X, 0, RLX, SYS), GET(X, 1, RLX, SYS))}},
    {"CoWR", "one location: a lane reads its own write, or a later one", FORBIDDEN, R1(0),
     {RANK(0, SET(X, 1, RLX, SYS), GET(X, 0, RLX, SYS)),
      RANK(1, SET(X, 2, RLX, SYS))}},
    {"CoRW", "one location: a read is not of the lane's later write", FORBIDDEN, R1(1),
     {RANK(0, GET(X, 0, RLX, SYS), SET(X, 1, RLX, SYS)),
      RANK(1, GET(X, 1, RLX, SYS))}},
    {"counter", "two updates are not lost", FORBIDDEN, R2(0, 0),
     {RANK(0, ADD(F, 1, 0, RLX, SYS)), RANK(1, ADD(F, 1, 1, RLX, SYS))}},
    {"counter+agent", "two updates at agent scope from two ranks", ALLOWED, R2(0, 0),
     {RANK(0, ADD(F, 1, 0, RLX, AG)), RANK(1, ADD(F, 1, 1, RLX, AG))}},
    {"2+2W", "two words, which two lanes write in two orders", ALLOWED, R3(1, 1, 1),
     {RANK(0, SET(X, 1, RLX, SYS), SET(Y, 2, RLX, SYS), SET(F, 1, REL, SYS)),
      RANK(1, SET(Y, 1, RLX, SYS), SET(X, 2, RLX, SYS),
           GET(F, 0, ACQ, SYS), GET(X, 1, RLX, SYS), GET(Y, 2, RLX, SYS))}},
    {"S", "a write comes before one of the lane that it heard of", ALLOWED, R2(1, 2),
     {RANK(0, SET(X, 2, RLX, SYS), SET(Y, 1, RLX, SYS)),
      RANK(1, GET(Y, 0, RLX, SYS), SET(X, 1, RLX, SYS), GET(X, 1, RLX, SYS))}},
    {"S+acquire", "the same with release and acquire", FORBIDDEN, R2(1, 2),
     {RANK(0, SET(X, 2, RLX, SYS), SET(Y, 1, REL, SYS)),
      RANK(1, GET(Y, 0, ACQ, SYS), SET(X, 1, RLX, SYS), GET(X, 1, RLX, SYS))}},
    {"update+store", "a write between the two halves of an update", FORBIDDEN, R3(0, 1, 1),
     {RANK(0, ADD(X, 1, 0, RLX, SYS), GET(F, 1, ACQ, SYS), GET(X, 2, RLX, SYS)),
      RANK(1, SET(X, 5, RLX, SYS), SET(F, 1, REL, SYS))}},
    {"packet", "8 bytes at once: a flag in the upper half", FORBIDDEN, R1(UINT64_C(1) << 32),
     {RANK(0, SET(X, (UINT64_C(1) << 32) + 1, RLX, SYS)),
      RANK(1, GET(X, 0, RLX, SYS))}},
    {"mixed", "two sizes: the half that was stored last", FORBIDDEN, R2(1, 0),
     {RANK(0, SET4(X, 1, RLX), SET(F, 1, REL, SYS)),
      RANK(1, GET(F, 0, ACQ, SYS), GET(X, 1, RLX, SYS))}},
};
/* clang-format on */

#define NUM_LITMUS ((int)(sizeof litmus_tests / sizeof litmus_tests[0]))

#endif /* IRIS_TESTS_CHECK_LITMUS_H */
