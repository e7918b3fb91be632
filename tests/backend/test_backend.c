/* SPDX-License-Identifier: MIT
 *
 * The contract of backends, of each that this build has and that runs here.
 */
#include "backend/contract.h"

#include <stddef.h>

int main(void)
{
    return contract_run(NULL);
}
