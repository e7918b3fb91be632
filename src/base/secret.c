/* SPDX-License-Identifier: MIT
 *
 * SHA-256 as in FIPS 180-4 and HMAC as in RFC 2104. The tests compare them with
 * the published vectors.
 */
#include "config.h"

#include "base/base.h"

#include "base/link.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define BLOCK_BYTES 64

/* ---- SHA-256 ---- */

struct sha256 {
    uint32_t state[8];
    uint64_t bytes; /* hashed so far */
    unsigned char block[BLOCK_BYTES];
};

/* The first 32 bits of the fractional parts of the cube roots of the first 64
 * primes (FIPS 180-4, 4.2.2). */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static void begin_hash(struct sha256 *hash)
{
    static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                        0xa54ff53a, 0x510e527f, 0x9b05688c,
                                        0x1f83d9ab, 0x5be0cd19};

    memcpy(hash->state, initial, sizeof initial);
    hash->bytes = 0;
}

static uint32_t rotate(uint32_t x, int by)
{
    return x >> by | x << (32 - by);
}

static void expand_block(const unsigned char *block, uint32_t words[64])
{
    for (int i = 0; i < 16; i++) {
        words[i] = (uint32_t)block[4 * i] << 24 |
                   (uint32_t)block[4 * i + 1] << 16 |
                   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    }
    for (int i = 16; i < 64; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];

        words[i] = words[i - 16] + words[i - 7] +
                   (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
                   (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
}

/* The compression function. The working variables a to h of the standard are
 * v[0] to v[7]. */
static void hash_block(struct sha256 *hash)
{
    uint32_t words[64], v[8];

    expand_block(hash->block, words);
    memcpy(v, hash->state, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t one =
            v[7] + (rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)) +
            ((v[4] & v[5]) ^ (~v[4] & v[6])) + round_constants[i] + words[i];
        uint32_t two = (rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)) +
                       ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));

        memmove(&v[1], &v[0], 7 * sizeof v[0]);
        v[4] += one;
        v[0] = one + two;
    }
    for (int i = 0; i < 8; i++) {
        hash->state[i] += v[i];
    }
}

static void hash_bytes(struct sha256 *hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;

    while (bytes > 0) {
        size_t filled = hash->bytes % BLOCK_BYTES, room = BLOCK_BYTES - filled;
        size_t part = bytes < room ? bytes : room;

        memcpy(hash->block + filled, at, part);
        hash->bytes += part;
        at += part;
        bytes -= part;
        if (part == room) {
            hash_block(hash);
        }
    }
}

/* Appends a bit of 1, zeros, and the number of bits. */
static void end_hash(struct sha256 *hash,
                     unsigned char digest[IRIS_DIGEST_BYTES])
{
    unsigned char padding[BLOCK_BYTES] = {0x80}, length[8];
    uint64_t bits = 8 * hash->bytes;
    size_t filled = hash->bytes % BLOCK_BYTES;

    for (int i = 0; i < 8; i++) {
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    }
    hash_bytes(hash, padding, (filled < 56 ? 56 : 120) - filled);
    hash_bytes(hash, length, sizeof length);
    for (int i = 0; i < IRIS_DIGEST_BYTES; i++) {
        digest[i] = (unsigned char)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
    }
}

void iris_i_sha256(const void *data, size_t bytes,
                   unsigned char digest[IRIS_DIGEST_BYTES])
{
    struct sha256 hash;

    begin_hash(&hash);
    hash_bytes(&hash, data, bytes);
    end_hash(&hash, digest);
}

/* ---- HMAC ---- */

/* Begins a hash with the key's block, of which each byte is changed by
 * `pad`. */
static void begin_keyed(struct sha256 *hash,
                        const unsigned char block[BLOCK_BYTES],
                        unsigned char pad)
{
    unsigned char padded[BLOCK_BYTES];

    for (int i = 0; i < BLOCK_BYTES; i++) {
        padded[i] = block[i] ^ pad;
    }
    begin_hash(hash);
    hash_bytes(hash, padded, sizeof padded);
}

void iris_i_hmac_sha256(const void *key, size_t key_bytes, const void *data,
                        size_t bytes, unsigned char mac[IRIS_DIGEST_BYTES])
{
    unsigned char block[BLOCK_BYTES] = {0}, inner[IRIS_DIGEST_BYTES];
    struct sha256 hash;

    if (key_bytes > sizeof block) {
        iris_i_sha256(key, key_bytes, block);
    } else {
        memcpy(block, key, key_bytes);
    }
    begin_keyed(&hash, block, 0x36);
    hash_bytes(&hash, data, bytes);
    end_hash(&hash, inner);
    begin_keyed(&hash, block, 0x5c);
    hash_bytes(&hash, inner, sizeof inner);
    end_hash(&hash, mac);
}

/* ---- Secrets ---- */

iris_status_t iris_i_secret_random(void *data, size_t bytes)
{
    unsigned char *at = data;

    while (bytes > 0) {
        ssize_t got = getrandom(at, bytes, 0);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno,
                                     "the system gives no random bytes");
        }
        at += got;
        bytes -= (size_t)got;
    }
    return IRIS_OK;
}

void iris_i_secret_derive(const struct iris_secret *secret, const char *label,
                          struct iris_secret *derived_p)
{
    struct iris_secret derived;

    iris_i_hmac_sha256(secret->bytes, sizeof secret->bytes, label,
                       strlen(label), derived.bytes);
    *derived_p = derived;
}

void iris_i_secret_name(const struct iris_secret *secret, const char *label,
                        char name[IRIS_SECRET_NAME_BYTES])
{
    struct iris_secret derived;

    iris_i_secret_derive(secret, label, &derived);
    for (int i = 0; i < (IRIS_SECRET_NAME_BYTES - 1) / 2; i++) {
        snprintf(name + 2 * i, 3, "%02x", derived.bytes[i]);
    }
}

int iris_i_secret_equal(const void *a, const void *b, size_t bytes)
{
    const volatile unsigned char *left = a, *right = b;
    unsigned difference = 0;

    for (size_t i = 0; i < bytes; i++) {
        difference |= (unsigned)(left[i] ^ right[i]);
    }
    return difference == 0;
}
