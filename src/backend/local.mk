# SPDX-License-Identifier: MIT
libirisi_la_SOURCES += %D%/backend.h %D%/module.h %D%/registry.c
