dnl SPDX-License-Identifier: MIT
dnl
dnl The project's own compiler flags, which leave the user's CFLAGS alone, and
dnl what the system must have.

dnl IRIS_PROJECT_FLAGS: sets AM_CFLAGS, of every object of the project.
AC_DEFUN([IRIS_PROJECT_FLAGS], [
  AM_CFLAGS="-std=gnu11 -Wall -Wextra -Wundef -Wshadow -Wstrict-prototypes"
  AM_CFLAGS="$AM_CFLAGS -fvisibility=hidden"
  AC_SUBST([AM_CFLAGS])
])

dnl IRIS_CHECK_SYSTEM: Linux, threads, and the calls peers are watched with.
AC_DEFUN([IRIS_CHECK_SYSTEM], [
  AC_REQUIRE([AC_CANONICAL_HOST])
  AS_CASE([$host_os], [linux*], [],
    [AC_MSG_ERROR([Iris runs on Linux (O_TMPFILE, pidfd); this is $host_os])])
  AC_SEARCH_LIBS([pthread_create], [pthread], [],
    [AC_MSG_ERROR([no POSIX threads])])
  AC_CHECK_DECL([SYS_pidfd_open], [],
    [AC_MSG_ERROR([the system headers lack pidfd_open (Linux 5.3, glibc 2.31)])],
    [[#include <sys/syscall.h>]])
])

dnl IRIS_CMOCKA: the unit tests need CMocka; the library does not.
AC_DEFUN([IRIS_CMOCKA], [
  PKG_CHECK_MODULES([CMOCKA], [cmocka >= 1.1.5],
    [iris_cmocka=yes], [iris_cmocka=no])
  AM_CONDITIONAL([HAVE_CMOCKA], [test "x$iris_cmocka" = xyes])
])

dnl IRIS_DEVICE_LINK: makes include/iris/device of the build folder a link to
dnl device/, so that <iris/device/x.h> means the same here as once installed.
dnl (AC_CONFIG_LINKS would do, but Automake takes no folder there.)
AC_DEFUN([IRIS_DEVICE_LINK], [
  AC_CONFIG_COMMANDS([include/iris/device],
    [AS_CASE([$srcdir],
       [/*], [iris_device=$srcdir/device],
       [iris_device=../../$srcdir/device])
     AS_MKDIR_P([include/iris])
     rm -f include/iris/device
     ln -s "$iris_device" include/iris/device])
])

dnl IRIS_SUMMARY: what configure decided.
AC_DEFUN([IRIS_SUMMARY], [
  AS_IF([test "x$iris_cmocka" = xno],
    [iris_cmocka="no (unit tests cannot be built; install libcmocka-dev)"])
  AC_MSG_NOTICE([
  iris $PACKAGE_VERSION
    backends   $iris_backends
    MPI        $iris_mpi_found
    CMocka     $iris_cmocka
    compiler   $CC $CFLAGS
    prefix     $prefix])
])
