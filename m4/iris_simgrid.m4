dnl SPDX-License-Identifier: MIT
dnl
dnl IRIS_SIMGRID: --with-simgrid=auto (if it is found), yes (or an error) or no.
dnl iris sim simulates networks between nodes with it; without, its option
dnl --topology is refused.
AC_DEFUN([IRIS_SIMGRID], [
  AC_ARG_WITH([simgrid], [AS_HELP_STRING([--with-simgrid@<:@=DIR|yes|no|auto@:>@],
    [networks of clusters in iris sim; DIR holds include/simgrid @<:@auto@:>@])], [],
    [with_simgrid=auto])
  have_simgrid=0 SIMGRID_CPPFLAGS= SIMGRID_LIBS= simgrid_dir=
  iris_save_CPPFLAGS=$CPPFLAGS iris_save_LIBS=$LIBS
  AS_CASE([$with_simgrid], [no|yes|auto], [],
    [SIMGRID_CPPFLAGS="-I$with_simgrid/include"
     simgrid_dir="-L$with_simgrid/lib -Wl,-rpath,$with_simgrid/lib"])
  dnl A folder without it must not stand for the system's.
  AS_CASE([$with_simgrid], [yes|auto], [simgrid_wanted=1], [no], [simgrid_wanted=0],
    [AS_IF([test -e "$with_simgrid/include/simgrid/s4u.hpp"],
      [simgrid_wanted=1], [simgrid_wanted=0])])
  AS_IF([test $simgrid_wanted = 1], [
    AC_LANG_PUSH([C++])
    CPPFLAGS="$CPPFLAGS $SIMGRID_CPPFLAGS" LIBS="$simgrid_dir -lsimgrid $LIBS"
    AC_MSG_CHECKING([for SimGrid 3.32 or newer])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>
#if SIMGRID_VERSION < 33200
#error too old
#endif]], [[return simgrid::s4u::Engine::get_clock() > 0 &&
      simgrid::s4u::Comm::sendto_init() == nullptr;]])],
      [have_simgrid=1 SIMGRID_LIBS="$simgrid_dir -lsimgrid -lstdc++"])
    AS_IF([test $have_simgrid = 1], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])])
    AC_LANG_POP([C++])])
  CPPFLAGS=$iris_save_CPPFLAGS LIBS=$iris_save_LIBS
  AS_CASE([$with_simgrid:$have_simgrid], [no:*|auto:*|*:1], [],
    [AC_MSG_ERROR([--with-simgrid=$with_simgrid: no working SimGrid 3.32 found. m4_normalize(
      [Install libsimgrid-dev and a C++ compiler, name the folder that holds
       include/simgrid with --with-simgrid=DIR, or configure --without-simgrid])])])
  AM_CONDITIONAL([HAVE_SIMGRID], [test $have_simgrid = 1])
  m4_map_args([AC_SUBST], [with_simgrid], [SIMGRID_CPPFLAGS], [SIMGRID_LIBS])
])
