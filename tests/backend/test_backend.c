/* SPDX-License-Identifier: MIT
 *
 * The contract of backends, of each that this build has and that runs here.
 */
#include "support/harness.h"

#include "backend/contract.h"

#include <stddef.h>

static int TEST_FILE(unit)
{
    return contract_run(NULL);
}
