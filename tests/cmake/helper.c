/* SPDX-License-Identifier: MIT
 *
 * Device code that needs the headers of iris::device only.
 */
#include <iris/device.h>

float helper(uint16_t bits);

float helper(uint16_t bits)
{
    iris_bf16_t value = {bits};

    return iris_bf16_to_f32(value);
}
