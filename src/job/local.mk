# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/init.c %D%/internal.h %D%/spawn.c
