/* SPDX-License-Identifier: MIT
 *
 * A table of the collectives: name, parts, variants and kinds of packets of
 * each.
 */
#include "config.h"

#include "ccl/ccl.h"

#include <iris/device/kernels/ccl_args.h>

#define COPIED (IRIS_CCL_ON_HEAP | IRIS_CCL_ROWS | IRIS_CCL_STAGES)
#define ADDED (IRIS_CCL_ON_HEAP | IRIS_CCL_BY_NAME)
#define ADDED_APART (ADDED | IRIS_CCL_APART | IRIS_CCL_ONLY_SUM)

const struct iris_ccl_kind iris_i_ccl_kinds[IRIS_CCL_NUM_OPS] = {
    [IRIS_CCL_ALL_REDUCE] = {.name = "iris_all_reduce",
                             .rule_name = "all_reduce",
                             .reduces = 1,
                             .exchange = IRIS_CCL_REDUCE_ONE,
                             .variants = {{IRIS_CCL_ONE_SHOT,
                                           IRIS_CCL_ON_HEAP | IRIS_CCL_APART},
                                          {IRIS_CCL_TWO_SHOT, COPIED},
                                          {IRIS_CCL_ONE_SHOT_PACKET, 0},
                                          {IRIS_CCL_TWO_SHOT_PACKET, 0},
                                          {IRIS_CCL_ATOMIC, ADDED_APART},
                                          {IRIS_CCL_SPINLOCK, ADDED_APART},
                                          {IRIS_CCL_RING, ADDED}}},
    [IRIS_CCL_ALL_GATHER] = {.name = "iris_all_gather",
                             .rule_name = "all_gather",
                             .out_parts = 1,
                             .exchange = IRIS_CCL_GATHER,
                             .variants = {{IRIS_CCL_PUSH, COPIED},
                                          {IRIS_CCL_PULL, COPIED},
                                          {IRIS_CCL_PACKET, 0}}},
    [IRIS_CCL_REDUCE_SCATTER] = {.name = "iris_reduce_scatter",
                                 .rule_name = "reduce_scatter",
                                 .reduces = 1,
                                 .in_parts = 1,
                                 .exchange = IRIS_CCL_REDUCE_PARTS,
                                 .variants = {{IRIS_CCL_DIRECT, COPIED},
                                              {IRIS_CCL_PACKET, 0}}},
    [IRIS_CCL_ALL_TO_ALL] =
        {.name = "iris_all_to_all",
         .rule_name = "all_to_all",
         .in_parts = 1,
         .out_parts = 1,
         .exchange = IRIS_CCL_SWAP,
         .variants = {{IRIS_CCL_PUSH, COPIED | IRIS_CCL_APART},
                      {IRIS_CCL_PULL, COPIED | IRIS_CCL_APART},
                      {IRIS_CCL_PACKET, 0}}},
    [IRIS_CCL_BROADCAST] = {.name = "iris_ccl_broadcast",
                            .rule_name = "broadcast",
                            .has_root = 1,
                            .exchange = IRIS_CCL_SPREAD,
                            .variants = {{IRIS_CCL_PUSH, COPIED},
                                         {IRIS_CCL_PULL, COPIED},
                                         {IRIS_CCL_PACKET, 0}}},
    [IRIS_CCL_REDUCE] = {.name = "iris_reduce",
                         .reduces = 1,
                         .has_root = 1,
                         .exchange = IRIS_CCL_REDUCE_ONE,
                         .variants = {{IRIS_CCL_ONE_SHOT,
                                       IRIS_CCL_ON_HEAP | IRIS_CCL_APART},
                                      {IRIS_CCL_TWO_SHOT, COPIED},
                                      {IRIS_CCL_ONE_SHOT_PACKET, 0},
                                      {IRIS_CCL_TWO_SHOT_PACKET, 0}}},
    [IRIS_CCL_GATHER_TO] = {.name = "iris_gather", .has_root = 1, .pairs = 1},
    [IRIS_CCL_SCATTER_FROM] = {.name = "iris_scatter",
                               .has_root = 1,
                               .pairs = 1},
    [IRIS_CCL_ALL_GATHERV] = {.name = "iris_all_gatherv", .pairs = 1},
    [IRIS_CCL_ALL_TO_ALLV] = {.name = "iris_all_to_allv", .pairs = 1},
    [IRIS_CCL_SEND] = {.name = "iris_send", .pairs = 1},
    [IRIS_CCL_RECV] = {.name = "iris_recv", .pairs = 1},
    [IRIS_CCL_SEND_RECV] = {.name = "iris_send_recv", .pairs = 1},
};
