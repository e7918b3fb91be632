dnl SPDX-License-Identifier: MIT
dnl
dnl IRIS_BACKEND: --with-backend=sim|hip|all. The simulation backend is in every
dnl build; the option adds to it.

AC_DEFUN([IRIS_BACKEND], [
  AC_ARG_WITH([backend],
    [AS_HELP_STRING([--with-backend=sim|hip|all],
      [backends to build; sim always is @<:@sim@:>@])],
    [], [with_backend=sim])
  AC_SUBST([with_backend])
  AS_CASE([$with_backend],
    [sim], [iris_backends=sim],
    [hip|all], [AC_MSG_ERROR([--with-backend=$with_backend: the HIP backend is m4_normalize(
      [not part of this version yet. The simulation backend is:
       configure with --with-backend=sim, or without the option])])],
    [AC_MSG_ERROR([--with-backend=$with_backend: no such backend. m4_normalize(
      [Known values: sim, hip, all])])])
])
