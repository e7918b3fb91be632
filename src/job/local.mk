# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/init.c %D%/init.h %D%/spawn.c
