dnl SPDX-License-Identifier: MIT
dnl
dnl IRIS_MPI: --with-mpi[=DIR|yes|no|auto]. MPI brings ranks together; nothing
dnl else in the library uses it. Sets MPI_CFLAGS, MPI_LIBS, MPIRUN and
dnl HAVE_MPI, which is 0 or 1.
dnl
dnl   auto   MPI if it is found (the default)
dnl   yes    MPI, or an error
dnl   DIR    the MPI whose wrapper is DIR/bin/mpicc, or an error
dnl   no     none; ranks meet by environment or as threads

AC_DEFUN([IRIS_MPI], [
  AC_ARG_VAR([MPICC], [MPI compiler wrapper that is asked for flags])
  AC_ARG_VAR([MPIRUN], [MPI launcher that tests and examples use])
  AC_ARG_WITH([mpi],
    [AS_HELP_STRING([--with-mpi@<:@=DIR|yes|no|auto@:>@],
      [meet over Open MPI; DIR holds bin/mpicc @<:@auto@:>@])],
    [], [with_mpi=auto])
  iris_mpi_found=no
  AS_CASE([$with_mpi],
    [no], [],
    [yes|auto], [IRIS_MPI_FIND([$PATH])],
    [IRIS_MPI_FIND([$with_mpi/bin])])
  AS_CASE([$with_mpi:$iris_mpi_found],
    [no:no], [iris_mpi_found="no (as asked)"],
    [auto:no], [iris_mpi_found="no (not found; install libopenmpi-dev)"],
    [yes:no], [AC_MSG_ERROR([--with-mpi: no working Open MPI found. m4_normalize(
      [Install libopenmpi-dev, name it with --with-mpi=DIR, or configure
       --without-mpi])])],
    [*:no], [AC_MSG_ERROR([--with-mpi=$with_mpi: no working m4_normalize(
      [$with_mpi/bin/mpicc; DIR is the folder that holds bin/mpicc])])])
  AS_IF([test "x$have_mpi" = x1], [], [have_mpi=0])
  AC_DEFINE_UNQUOTED([HAVE_MPI], [$have_mpi],
    [1 if ranks can meet over MPI, else 0])
  AM_CONDITIONAL([HAVE_MPI], [test $have_mpi = 1])
  AC_SUBST([with_mpi])
  AC_SUBST([MPI_CFLAGS])
  AC_SUBST([MPI_LIBS])
])

dnl IRIS_MPI_FIND(PATH): asks the wrapper in PATH for its flags, else pkg-config
dnl when PATH is the user's own, and links a program with them.
AC_DEFUN([IRIS_MPI_FIND], [
  AC_PATH_PROG([MPICC], [mpicc], [], [$1])
  AC_PATH_PROGS([MPIRUN], [mpirun mpiexec], [], [$1])
  AS_IF([test -n "$MPICC"],
    [MPI_CFLAGS=`$MPICC -showme:compile 2>/dev/null`
     MPI_LIBS=`$MPICC -showme:link 2>/dev/null`])
  AS_IF([test -z "$MPI_LIBS" && test "x$1" = "x$PATH" && test -n "$PKG_CONFIG"],
    [MPI_CFLAGS=`$PKG_CONFIG --cflags ompi-c 2>/dev/null`
     MPI_LIBS=`$PKG_CONFIG --libs ompi-c 2>/dev/null`])
  AC_MSG_CHECKING([for Open MPI])
  iris_save_CPPFLAGS=$CPPFLAGS
  iris_save_LIBS=$LIBS
  CPPFLAGS="$CPPFLAGS $MPI_CFLAGS"
  LIBS="$MPI_LIBS $LIBS"
  AC_LINK_IFELSE(
    [AC_LANG_PROGRAM([[#include <mpi.h>]], [[return MPI_Init(0, 0);]])],
    [have_mpi=1
     iris_mpi_found="yes ($MPI_LIBS)"
     AC_MSG_RESULT([$MPI_LIBS])],
    [MPI_CFLAGS=
     MPI_LIBS=
     AC_MSG_RESULT([no])])
  CPPFLAGS=$iris_save_CPPFLAGS
  LIBS=$iris_save_LIBS
])
