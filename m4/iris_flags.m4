dnl SPDX-License-Identifier: MIT
dnl
dnl IRIS_CHECK_SYSTEM: the project's own compiler flags, which leave the user's
dnl CFLAGS alone, and what the system must have: Linux, threads, the calls peers
dnl are watched with, and for unit tests CMocka.
AC_DEFUN([IRIS_CHECK_SYSTEM], [
  AM_CFLAGS="-std=gnu11 -Wall -Wextra -Wundef -Wshadow -Wstrict-prototypes"
  AC_SUBST([AM_CFLAGS], ["$AM_CFLAGS -fvisibility=hidden"])
  AC_REQUIRE([AC_CANONICAL_HOST])
  AS_CASE([$host_os], [linux*], [],
    [AC_MSG_ERROR([Iris runs on Linux (O_TMPFILE, pidfd); this is $host_os])])
  AC_SEARCH_LIBS([pthread_create], [pthread], [], [AC_MSG_ERROR([no POSIX threads])])
  AC_CHECK_DECL([SYS_pidfd_open], [],
    [AC_MSG_ERROR([the system headers lack pidfd_open (Linux 5.3, glibc 2.31)])],
    [[#include <sys/syscall.h>]])
  PKG_CHECK_MODULES([CMOCKA], [cmocka >= 1.1.5], [iris_cmocka=yes],
    [iris_cmocka="no (unit tests cannot be built; install libcmocka-dev)"])
  AM_CONDITIONAL([HAVE_CMOCKA], [test "$iris_cmocka" = yes])
  dnl A link to device/, so that <iris/device/x.h> means the same in the build
  dnl folder as once installed. (For AC_CONFIG_LINKS Automake takes no folder.)
  AC_CONFIG_COMMANDS([include/iris/device], [AS_MKDIR_P([include/iris])
    rm -f include/iris/device && ln -s "`cd "$srcdir" && pwd`/device" include/iris/device])
])

dnl IRIS_BUILD_FACTS: how this was built, for iris info, as C strings.
AC_DEFUN([IRIS_BUILD_FACTS], [
  IRIS_C_STRING([IRIS_CONFIGURE_ARGS], [$ac_configure_args])
  IRIS_C_STRING([IRIS_BUILD_BACKENDS], [$iris_backends])
  IRIS_C_STRING([IRIS_BUILD_COMPILER], [$CC $CFLAGS])
])
AC_DEFUN([IRIS_C_STRING], [
  iris_text=`AS_ECHO(["$2"]) | sed 's/[[\\\\"]]/\\\\&/g' | tr '\n' ' ' | sed 's/^ *//; s/ *$//'`
  AC_DEFINE_UNQUOTED([$1], ["$iris_text"], [how this was configured, for iris info])
])

dnl IRIS_SUMMARY: what configure decided.
AC_DEFUN([IRIS_SUMMARY], [AC_MSG_NOTICE([
  iris $PACKAGE_VERSION
    backends   $iris_backends
    BLAS       $iris_blas
    MPI        $iris_mpi_found
    CMocka     $iris_cmocka
    compiler   $CC $CFLAGS
    prefix     $prefix])])
