dnl SPDX-License-Identifier: MIT
dnl
dnl IRIS_ZLIB: --with-zlib=auto (if it is found), yes (or an error) or no. Traces
dnl are compressed with it; without, names that end in .gz are refused.
AC_DEFUN([IRIS_ZLIB], [
  AC_ARG_WITH([zlib], [AS_HELP_STRING([--with-zlib@<:@=DIR|yes|no|auto@:>@],
    [compressed traces; DIR holds include/zlib.h @<:@auto@:>@])], [],
    [with_zlib=auto])
  have_zlib=0 ZLIB_LIBS=
  iris_save_CPPFLAGS=$CPPFLAGS iris_save_LIBS=$LIBS iris_save_LDFLAGS=$LDFLAGS
  AS_CASE([$with_zlib], [no|yes|auto], [],
    [ZLIB_CPPFLAGS="-I$with_zlib/include"
     zlib_dir="-L$with_zlib/lib -Wl,-rpath,$with_zlib/lib"
     CPPFLAGS="$CPPFLAGS $ZLIB_CPPFLAGS" LDFLAGS="$LDFLAGS $zlib_dir"])
  AS_IF([test "$with_zlib" != no],
    [AC_CHECK_HEADER([zlib.h], [AC_CHECK_LIB([z], [gzdopen],
      [have_zlib=1 ZLIB_LIBS="$zlib_dir -lz"])])])
  CPPFLAGS=$iris_save_CPPFLAGS LIBS=$iris_save_LIBS LDFLAGS=$iris_save_LDFLAGS
  AS_CASE([$with_zlib:$have_zlib], [no:*|auto:*|*:1], [],
    [AC_MSG_ERROR([--with-zlib=$with_zlib: no working zlib found. m4_normalize(
      [Install zlib1g-dev, name the folder that holds include/zlib.h with
       --with-zlib=DIR, or configure --without-zlib])])])
  AC_DEFINE_UNQUOTED([HAVE_ZLIB], [$have_zlib], [1 if traces can be compressed])
  m4_map_args([AC_SUBST], [with_zlib], [ZLIB_CPPFLAGS], [ZLIB_LIBS])
])
