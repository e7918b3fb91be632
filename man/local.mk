# SPDX-License-Identifier: MIT
dist_man_MANS = %D%/iris-bench.1 %D%/iris-info.1 %D%/iris-launch-env.1 \
	%D%/iris-sim.1 	%D%/iris-top.1 %D%/iris-trace.1 %D%/iris.7 %D%/iriscc.1
