/* SPDX-License-Identifier: MIT
 *
 * The fake HIP runtime's GPUs and its errors, those that tests ask for among
 * them.
 */
#include "config.h"

#include "fake.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_BUS 0x10

_Thread_local bool fake_in_callback;
#define FAKE_MEMORY_BYTES ((size_t)64 << 30) /* as it says */

static _Thread_local int current;
static _Thread_local bool chosen; /* hipSetDevice() was called */
static _Thread_local hipError_t last;

static atomic_int lost; /* the error that all calls return; 0: none */
static bool peers[FAKE_MAX_DEVICES][FAKE_MAX_DEVICES]; /* under the lock */

/* ---- Failures on demand ---- */

#define MAX_FAILURES 16

struct failure {
    char call[64];
    long nth;
    bool ever_after;
    bool loses;
    bool hangs;
    int error;
    long calls; /* so far */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct failure failures[MAX_FAILURES]; /* under the lock */
static int num_failures = -1;                 /* -1: to be read */
static int num_failed;

/* One item, of which the end is a comma or a zero. */
static bool parse(const char *item, struct failure *one)
{
    char error[32], nth[16];

    memset(one, 0, sizeof *one);
    if (sscanf(item, "%63[^:]:%15[^:]:%31[^,]", one->call, nth, error) != 3) {
        return false;
    }
    one->nth = atol(nth);
    one->ever_after = strchr(nth, '+') != NULL;
    one->loses = strcmp(error, "lost") == 0;
    one->hangs = strcmp(error, "hang") == 0;
    one->error = one->loses || one->hangs ? hipErrorLaunchFailure : atoi(error);
    return one->nth > 0 && one->error > 0;
}

static void read_list(const char *list)
{
    num_failures = 0;
    while (list != NULL && *list != '\0' && num_failures < MAX_FAILURES) {
        if (!parse(list, &failures[num_failures])) {
            fprintf(stderr, "fakehip: no such failure: %s\n", list);
            abort();
        }
        num_failures++;
        list = strchr(list, ',');
        list = list == NULL ? NULL : list + 1;
    }
}

int fakehip_fail(const char *list)
{
    int failed;

    pthread_mutex_lock(&lock);
    failed = num_failed;
    num_failed = 0;
    read_list(list);
    atomic_store(&lost, hipSuccess);
    pthread_mutex_unlock(&lock);
    return failed;
}

static hipError_t injected(const char *call)
{
    int error = hipSuccess;
    bool hangs = false;

    pthread_mutex_lock(&lock);
    if (num_failures < 0) {
        read_list(getenv("FAKEHIP_FAIL"));
    }
    for (int i = 0; i < num_failures; i++) {
        struct failure *one = &failures[i];

        if (strcmp(one->call, call) != 0) {
            continue;
        }
        one->calls++;
        if (one->calls == one->nth ||
            (one->ever_after && one->calls > one->nth)) {
            error = one->error;
            num_failed++;
            hangs = hangs || one->hangs;
            if (one->loses) {
                atomic_store(&lost, error);
            }
        }
    }
    pthread_mutex_unlock(&lock);
    while (hangs) {
        pause();
    }
    return (hipError_t)error;
}

hipError_t fake_lost(void)
{
    return (hipError_t)atomic_load_explicit(&lost, memory_order_relaxed);
}

hipError_t fake_leave(hipError_t error)
{
    if (error != hipSuccess) {
        last = error;
    }
    return error;
}

hipError_t fake_begin_work(void)
{
    hipError_t error = fake_lost();

    if (error == hipSuccess) {
        error = injected("work");
        atomic_store(&lost, error);
    }
    return error;
}

hipError_t fake_enter(const char *call)
{
    if (fake_in_callback) {
        return fake_leave(hipErrorInvalidContext);
    }
    return fake_leave(fake_lost() != hipSuccess ? fake_lost() : injected(call));
}

hipError_t fake_enter_driver(const char *call)
{
    hipError_t error = fake_enter(call);

    return error != hipSuccess || chosen ? error
                                         : fake_leave(hipErrorInvalidContext);
}

long long fake_setting(const char *name, long long otherwise)
{
    const char *text = getenv(name);

    return text == NULL ? otherwise : atoll(text);
}

bool fake_quirk(const char *name)
{
    static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        char name[32];
        long times;
    } seen[16];
    const char *list = getenv("FAKEHIP_QUIRKS");
    size_t length = strlen(name), i = 0;
    const char *at = list;
    bool is;

    while (at != NULL && (strncmp(at, name, length) != 0 ||
                          strchr(",:", at[length]) == NULL)) {
        at = strchr(at, ',');
        if (at != NULL) {
            at++;
        }
    }
    if (at == NULL || at[length] != ':') {
        return at != NULL;
    }
    pthread_mutex_lock(&seen_lock);
    while (seen[i].name[0] != '\0' && strcmp(seen[i].name, name) != 0) {
        i++;
    }
    snprintf(seen[i].name, sizeof seen[i].name, "%s", name);
    is = seen[i].times++ < atol(at + length + 1);
    pthread_mutex_unlock(&seen_lock);
    return is;
}

/* ---- Errors ---- */

FAKE_EXPORT hipError_t hipPeekAtLastError(void)
{
    return fake_lost() != hipSuccess ? fake_lost() : last;
}

FAKE_EXPORT hipError_t hipGetLastError(void)
{
    hipError_t error = hipPeekAtLastError();

    last = hipSuccess;
    return error;
}

static const struct {
    hipError_t error;
    const char *name;
    const char *text;
} texts[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorNoDevice, "hipErrorNoDevice",
     "no ROCm-capable device is detected"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {hipErrorNoBinaryForGpu, "hipErrorNoBinaryForGpu",
     "no kernel image is available for execution on the device"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid resource handle"},
    {hipErrorNotReady, "hipErrorNotReady", "device not ready"},
    {hipErrorIllegalAddress, "hipErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {hipErrorPeerAccessAlreadyEnabled, "hipErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure",
     "unspecified launch failure"},
    {hipErrorNotSupported, "hipErrorNotSupported", "operation not supported"},
    {hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {hipErrorStreamCaptureInvalidated, "hipErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
};

FAKE_EXPORT const char *hipGetErrorName(hipError_t error)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].error == error) {
            return texts[i].name;
        }
    }
    return "hipErrorUnknown";
}

FAKE_EXPORT const char *hipGetErrorString(hipError_t error)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].error == error) {
            return texts[i].text;
        }
    }
    return "unknown error";
}

/* ---- Devices ---- */

static int count(void)
{
    long long devices = fake_setting("FAKEHIP_DEVICES", 8);

    return devices < FAKE_MAX_DEVICES ? (int)devices : FAKE_MAX_DEVICES;
}

/* The call's error, else that of a number that is no device. */
static hipError_t enter_for(const char *call, int device)
{
    hipError_t error = fake_enter(call);

    return error == hipSuccess && (device < 0 || device >= count())
               ? hipErrorInvalidDevice
               : error;
}

int fake_device(void)
{
    return current;
}

FAKE_EXPORT hipError_t hipGetDeviceCount(int *count_p)
{
    hipError_t error = fake_enter(__func__);

    if (error == hipSuccess) {
        *count_p = count();
        error = *count_p == 0 ? hipErrorNoDevice : hipSuccess;
    }
    return fake_leave(error);
}

int fake_version(void)
{
    return (int)fake_setting("FAKEHIP_VERSION", 71400000);
}

void fake_need_version(int version)
{
    if (fake_version() < version) {
        abort();
    }
}

FAKE_EXPORT hipError_t hipRuntimeGetVersion(int *version_p)
{
    hipError_t error = fake_enter(__func__);

    if (error == hipSuccess) {
        *version_p = fake_version();
    }
    return fake_leave(error);
}

/* One of its own, whatever the runtime's. */
FAKE_EXPORT hipError_t hipDriverGetVersion(int *version_p)
{
    *version_p = 60443483;
    return hipSuccess;
}

FAKE_EXPORT hipError_t hipDeviceTotalMem(size_t *bytes_p, hipDevice_t device)
{
    hipError_t error = fake_enter(__func__);

    (void)device;
    if (error == hipSuccess) {
        *bytes_p = FAKE_MEMORY_BYTES;
    }
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipGetDevice(int *device_p)
{
    hipError_t error = fake_enter(__func__);

    if (error == hipSuccess) {
        *device_p = current;
    }
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipSetDevice(int device)
{
    hipError_t error = enter_for(__func__, device);

    if (error == hipSuccess) {
        current = device;
        chosen = true;
    }
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipDeviceGetName(char *name, int bytes,
                                        hipDevice_t device)
{
    hipError_t error = enter_for(__func__, device);

    if (error == hipSuccess) {
        snprintf(name, (size_t)bytes, "Fake Instinct");
    }
    return fake_leave(error);
}

/* The number in the node of a device, and the partitions of a GPU. */
static int number_of(int device)
{
    return device + (int)fake_setting("FAKEHIP_FIRST", 0);
}

static int partitions(void)
{
    return (int)fake_setting("FAKEHIP_PARTITIONS", 1);
}

FAKE_EXPORT hipError_t hipDeviceGetPCIBusId(char *text, int bytes, int device)
{
    hipError_t error = enter_for(__func__, device);

    if (error == hipSuccess) {
        snprintf(text, (size_t)bytes, "0000:%02x:00.0",
                 (unsigned)(FIRST_BUS + number_of(device) / partitions()));
    }
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipDeviceGetUuid(hipUUID *uuid_p, hipDevice_t device)
{
    hipError_t error = enter_for(__func__, device);
    int one = fake_quirk("one-uuid") ? partitions() : 1;

    if (error == hipSuccess) {
        memset(uuid_p, 0, sizeof *uuid_p);
        snprintf(uuid_p->bytes, sizeof uuid_p->bytes, "%08x",
                 (unsigned)(0x5eed0000 + number_of(device) / one));
    }
    return fake_leave(error);
}

/* ---- Peers ---- */

/* Whether a list of pairs in the environment has this one; "0>1" is from the
 * first to the second only. */
static bool has_pair(const char *variable, int one, int other)
{
    const char *pairs = getenv(variable);
    int a, b;
    char way;

    while (pairs != NULL && sscanf(pairs, "%d%c%d", &a, &way, &b) == 3) {
        if ((a == one && b == other) ||
            (a == other && b == one && way == '-')) {
            return true;
        }
        pairs = strchr(pairs, ',');
        pairs = pairs == NULL ? NULL : pairs + 1;
    }
    return false;
}

bool fake_linked(int one, int other)
{
    return !has_pair("FAKEHIP_NO_PEER", one, other);
}

FAKE_EXPORT hipError_t hipDeviceGetP2PAttribute(int *value_p,
                                                hipDeviceP2PAttr attribute,
                                                int device, int peer)
{
    hipError_t error = enter_for(__func__, device);

    if (error == hipSuccess &&
        attribute != hipDevP2PAttrNativeAtomicSupported) {
        error = hipErrorInvalidValue;
    }
    if (error == hipSuccess) {
        *value_p = !has_pair("FAKEHIP_NO_ATOMICS", device, peer);
    }
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipDeviceCanAccessPeer(int *can_p, int device, int peer)
{
    hipError_t error = enter_for(__func__, device);

    if (error == hipSuccess && (peer < 0 || peer >= count())) {
        error = hipErrorInvalidDevice;
    }
    if (error == hipSuccess) {
        *can_p = device != peer && fake_linked(device, peer);
    }
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags)
{
    hipError_t error = enter_for(__func__, peer);

    if (error == hipSuccess && (peer == current || flags != 0)) {
        error = hipErrorInvalidValue;
    }
    if (error == hipSuccess && !fake_linked(current, peer)) {
        error = hipErrorPeerAccessUnsupported;
    }
    if (error == hipSuccess) {
        pthread_mutex_lock(&lock);
        if (peers[current][peer]) {
            error = hipErrorPeerAccessAlreadyEnabled;
        }
        peers[current][peer] = true;
        pthread_mutex_unlock(&lock);
    }
    return fake_leave(error);
}
