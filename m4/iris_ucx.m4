dnl SPDX-License-Identifier: MIT
dnl
dnl IRIS_UCX: --with-ucx=auto (if its headers are found), yes or DIR (or an error) or
dnl no. The library itself is loaded at run time.
AC_DEFUN([IRIS_UCX], [
  AC_ARG_WITH([ucx], [AS_HELP_STRING([--with-ucx@<:@=DIR|yes|no|auto@:>@],
    [IRIS_TRANSPORT=ucx; DIR holds include/ucp/api/ucp.h @<:@auto@:>@])], [],
    [with_ucx=auto])
  have_ucx=0
  iris_save_CPPFLAGS=$CPPFLAGS
  AS_CASE([$with_ucx], [no|yes|auto], [],
    [UCX_CPPFLAGS="-isystem $with_ucx/include" CPPFLAGS="$CPPFLAGS $UCX_CPPFLAGS"])
  AS_IF([test "$with_ucx" != no],
    [AC_CHECK_HEADER([ucp/api/ucp.h], [have_ucx=1])])
  CPPFLAGS=$iris_save_CPPFLAGS
  AS_CASE([$with_ucx:$have_ucx], [no:*|auto:*|*:1], [],
    [AC_MSG_ERROR([--with-ucx=$with_ucx: no <ucp/api/ucp.h> found. m4_normalize(
      [Install libucx-dev, name the folder that holds include/ucp with
       --with-ucx=DIR, or configure --without-ucx])])])
  AC_DEFINE_UNQUOTED([HAVE_UCX], [$have_ucx], [1 if IRIS_TRANSPORT may be ucx])
  m4_map_args([AC_SUBST], [with_ucx], [UCX_CPPFLAGS])
])
