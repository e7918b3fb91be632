dnl SPDX-License-Identifier: MIT
dnl
dnl IRIS_BLAS: --with-blas=auto (a module for CBLAS if it is found), yes
dnl or DIR (one, or an error) or no. The library itself is linked with none.
AC_DEFUN([IRIS_BLAS], [
  AC_ARG_WITH([blas], [AS_HELP_STRING([--with-blas@<:@=DIR|yes|no|auto@:>@],
    [products by CBLAS (OpenBLAS) @<:@auto@:>@])],
    [], [with_blas=auto])
  have_cblas=0 CBLAS_CPPFLAGS= CBLAS_LIBS=
  AS_CASE([$with_blas], [no], [], [yes|auto], [IRIS_BLAS_FIND],
    [CBLAS_CPPFLAGS="-I$with_blas/include" CBLAS_LIBS="-L$with_blas/lib"
     IRIS_BLAS_FIND])
  AS_CASE([$with_blas:$have_cblas], [no:*|auto:*|*:1], [],
    [AC_MSG_ERROR([--with-blas=$with_blas: no working CBLAS found. m4_normalize(
      [Install libopenblas-dev, name the folder that holds include/cblas.h with
       --with-blas=DIR, or configure --without-blas])])])
  iris_blas=
  AS_IF([test $have_cblas = 1], [iris_blas="cblas ($CBLAS_LIBS)"])
  AS_IF([test -z "$iris_blas"], [iris_blas="none (install libopenblas-dev)"])
  AC_DEFINE_UNQUOTED([HAVE_CBLAS], [$have_cblas], [1 if there is a cblas module])
  AM_CONDITIONAL([HAVE_CBLAS], [test $have_cblas = 1])
  m4_map_args([AC_SUBST], [with_blas], [CBLAS_CPPFLAGS], [CBLAS_LIBS])
])

dnl IRIS_BLAS_FIND: compiles and links a product with each of the libraries.
AC_DEFUN([IRIS_BLAS_FIND], [
  AC_MSG_CHECKING([for CBLAS])
  iris_save_CPPFLAGS=$CPPFLAGS iris_save_LIBS=$LIBS iris_folder=$CBLAS_LIBS
  CPPFLAGS="$CPPFLAGS $CBLAS_CPPFLAGS"
  for iris_lib in openblas cblas blas; do
    AS_IF([test $have_cblas = 0], [CBLAS_LIBS="$iris_folder -l$iris_lib"
      LIBS="$CBLAS_LIBS $iris_save_LIBS"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cblas.h>]],
        [[float x = 1; cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans,
          1, 1, 1, 1, &x, 1, &x, 1, 0, &x, 1);]])], [have_cblas=1])])
  done
  AS_IF([test $have_cblas = 0], [CBLAS_LIBS=])
  AC_MSG_RESULT([${CBLAS_LIBS:-no}])
  CPPFLAGS=$iris_save_CPPFLAGS LIBS=$iris_save_LIBS
])
