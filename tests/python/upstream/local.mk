# SPDX-License-Identifier: MIT
#
# What upstream.sh runs where Triton is installed.
EXTRA_DIST += \
	%D%/control/test_addresses.py %D%/lose_peer.py %D%/run.py \
	%D%/test_aggregates.py \
	%D%/test_atomics.py \
	%D%/test_brain_floats.py \
	%D%/test_clocks.py %D%/test_creation.py \
	%D%/test_cuda.py %D%/test_gluon.py \
	%D%/test_graphs.py %D%/test_heap.py \
	%D%/test_imports.py %D%/test_launch.py %D%/test_libdevice.py \
	%D%/test_lockstep.py %D%/test_nvidia.py %D%/test_polls.py \
	%D%/test_process_groups.py %D%/test_sharing.py
