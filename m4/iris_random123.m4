dnl SPDX-License-Identifier: MIT
dnl
dnl IRIS_RANDOM123: the headers of Random123, which the library's kernels for
dnl random numbers are compiled with; programs that use Iris do without them.
AC_DEFUN([IRIS_RANDOM123], [
  AC_ARG_WITH([random123], [AS_HELP_STRING([--with-random123=DIR],
    [folder that holds Random123/philox.h, or include/ with it
     @<:@the compiler's@:>@])], [], [with_random123=yes])
  RANDOM123_CPPFLAGS=
  AS_CASE([$with_random123], [yes], [],
    [no], [AC_MSG_ERROR([--without-random123: m4_normalize([the library makes
      random numbers with Random123, always; leave the option out])])],
    [for dir in "$with_random123/include" "$with_random123"; do
       AS_IF([test -e "$dir/Random123/philox.h"],
         [with_random123=`cd "$dir" && pwd`
          RANDOM123_CPPFLAGS="-isystem $with_random123"])
     done
     AS_IF([test -n "$RANDOM123_CPPFLAGS"], [],
       [AC_MSG_ERROR([--with-random123=$with_random123: m4_normalize([there is no
         Random123/philox.h; name the folder that Random123 was unpacked
         to])])])])
  iris_save_CPPFLAGS=$CPPFLAGS CPPFLAGS="$CPPFLAGS $RANDOM123_CPPFLAGS"
  AC_CHECK_HEADER([Random123/philox.h], [], [AC_MSG_ERROR([m4_normalize([no
    <Random123/philox.h>: install librandom123-dev, or unpack Random123 (headers
    only, https://github.com/DEShawResearch/random123) and name its folder with
    --with-random123=DIR])])])
  CPPFLAGS=$iris_save_CPPFLAGS
  m4_map_args([AC_SUBST], [with_random123], [RANDOM123_CPPFLAGS])
])
