dnl SPDX-License-Identifier: MIT
dnl
dnl IRIS_MPI: --with-mpi=auto (MPI if it is found), yes or DIR (MPI, or an error)
dnl or no. MPI brings ranks together; nothing else in the library uses it.
AC_DEFUN([IRIS_MPI], [
  AC_ARG_VAR([MPICC], [MPI compiler wrapper that is asked for flags])
  AC_ARG_VAR([MPIRUN], [MPI launcher that tests and examples use])
  AC_ARG_WITH([mpi], [AS_HELP_STRING([--with-mpi@<:@=DIR|yes|no|auto@:>@],
    [meet over Open MPI; DIR holds bin/mpicc @<:@auto@:>@])], [], [with_mpi=auto])
  have_mpi=0
  AS_CASE([$with_mpi], [no], [MPIRUN=], [yes|auto], [IRIS_MPI_FIND([$PATH])],
    [IRIS_MPI_FIND([$with_mpi/bin])])
  AS_CASE([$with_mpi:$have_mpi],
    [*:1], [iris_mpi_found="yes ($MPI_LIBS)"],
    [no:0], [iris_mpi_found="no (as asked)"],
    [auto:0], [iris_mpi_found="no (not found; install libopenmpi-dev)"],
    [AC_MSG_ERROR([--with-mpi=$with_mpi: no working Open MPI found. m4_normalize(
      [Install libopenmpi-dev, name the folder that holds bin/mpicc with
       --with-mpi=DIR, or configure --without-mpi])])])
  AC_DEFINE_UNQUOTED([HAVE_MPI], [$have_mpi], [1 if ranks can meet over MPI])
  AM_CONDITIONAL([HAVE_MPI], [test $have_mpi = 1])
  m4_map_args([AC_SUBST], [with_mpi], [MPI_CFLAGS], [MPI_LIBS])
])

dnl IRIS_MPI_FIND(PATH): asks mpicc in PATH, else pkg-config, and links a program.
AC_DEFUN([IRIS_MPI_FIND], [
  AC_PATH_PROG([MPICC], [mpicc], [], [$1])
  AC_PATH_PROGS([MPIRUN], [mpirun mpiexec], [], [$1])
  MPI_CFLAGS=`$MPICC -showme:compile 2>/dev/null`
  MPI_LIBS=`$MPICC -showme:link 2>/dev/null`
  AS_IF([test -z "$MPI_LIBS" && test "x$1" = "x$PATH"],
    [MPI_CFLAGS=`$PKG_CONFIG --cflags ompi-c 2>/dev/null`
     MPI_LIBS=`$PKG_CONFIG --libs ompi-c 2>/dev/null`])
  AC_MSG_CHECKING([for Open MPI])
  iris_save_CPPFLAGS=$CPPFLAGS iris_save_LIBS=$LIBS
  CPPFLAGS="$CPPFLAGS $MPI_CFLAGS" LIBS="$MPI_LIBS $LIBS"
  AC_LINK_IFELSE(
    [AC_LANG_PROGRAM([[#include <mpi.h>]], [[return MPI_Init(0, 0);]])],
    [have_mpi=1], [MPI_CFLAGS= MPI_LIBS= MPIRUN=])
  AS_IF([$MPIRUN --version 2>&1 | grep "Open MPI" >/dev/null], [], [MPIRUN=])
  AC_MSG_RESULT([${MPI_LIBS:-no}])
  CPPFLAGS=$iris_save_CPPFLAGS LIBS=$iris_save_LIBS
])
