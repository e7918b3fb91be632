# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/internal.h %D%/spawn.c
