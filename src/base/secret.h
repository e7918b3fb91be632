/* SPDX-License-Identifier: MIT
 *
 * Secrets of a job: SHA-256 (FIPS 180-4), HMAC-SHA256 (RFC 2104), random bytes,
 * and keys and names that are derived from a secret.
 */
#ifndef IRIS_SRC_BASE_SECRET_H
#define IRIS_SRC_BASE_SECRET_H

#include <stddef.h>

#include <iris/status.h>

#define IRIS_SECRET_BYTES 32
#define IRIS_DIGEST_BYTES 32
#define IRIS_SECRET_NAME_BYTES 33

struct iris_secret {
    unsigned char bytes[IRIS_SECRET_BYTES];
};

void iris_i_sha256(const void *data, size_t bytes,
                   unsigned char digest[IRIS_DIGEST_BYTES]);
void iris_i_hmac_sha256(const void *key, size_t key_bytes, const void *data,
                        size_t bytes, unsigned char mac[IRIS_DIGEST_BYTES]);

/* Random bytes from the system. IRIS_ERR_SYSTEM */
iris_status_t iris_i_secret_random(void *data, size_t bytes);

/* A key for one purpose, which the label names. The derived key reveals neither
 * the secret nor the key of another label. */
void iris_i_secret_derive(const struct iris_secret *secret, const char *label,
                          struct iris_secret *derived_p);

/* A name for one purpose, as 32 hexadecimal digits. Other users may see it. */
void iris_i_secret_name(const struct iris_secret *secret, const char *label,
                        char name[IRIS_SECRET_NAME_BYTES]);

/* Whether the bytes are equal. The time does not depend on them. */
int iris_i_secret_equal(const void *a, const void *b, size_t bytes);

#endif /* IRIS_SRC_BASE_SECRET_H */
