/* SPDX-License-Identifier: MIT
 *
 * What the two files of the fake HIP runtime's virtual memory calls share.
 */
#ifndef IRIS_TESTS_FAKEHIP_FAKE_VMEM_H
#define IRIS_TESTS_FAKEHIP_FAKE_VMEM_H

#include "fake.h"

#include <pthread.h>

#define LARGE_PAGE ((size_t)2 << 20)

/* Memory as an unnamed file. */
struct fake_handle {
    struct fake_handle *next;
    int refs; /* of the program's, and one for each mapping */
    int fd;
    size_t bytes;
    bool imported;
    hipMemAllocationProp prop;
};

/* Guards all there is. */
extern pthread_mutex_t fake_vmem_lock;

/* Of mappings. */
size_t fake_granularity(void);

/* With the lock held: the handle if it is one, dropping a reference, and how
 * many there are. */
struct fake_handle *fake_handle_find(hipMemGenericAllocationHandle_t handle);
void fake_handle_put(struct fake_handle *handle);
int fake_handle_count(void);

/* With the lock held: that of the mapping at an address; NULL: none. */
struct fake_handle *fake_handle_at(const void *ptr);

#endif /* IRIS_TESTS_FAKEHIP_FAKE_VMEM_H */
