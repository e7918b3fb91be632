dnl SPDX-License-Identifier: MIT
dnl
dnl IRIS_BACKEND: --with-backend=sim|hip|all, and for which GPUs to compile. The
dnl simulation backend is in every build; hip adds a loadable module and the GPU
dnl half of kernels.
AC_DEFUN([IRIS_BACKEND], [
  AC_ARG_WITH([backend], [AS_HELP_STRING([--with-backend=sim|hip|all],
    [backends to build; sim always is @<:@sim@:>@])], [], [with_backend=sim])
  AC_ARG_WITH([hip-platform], [AS_HELP_STRING([--with-hip-platform=amd|nvidia],
    [GPUs of the hip backend @<:@what is found@:>@])])
  AC_ARG_WITH([rocm], [AS_HELP_STRING([--with-rocm=DIR],
    [ROCm's folder @<:@ROCM_PATH, /opt/rocm, that of hipcc@:>@])],
    [rocm_named=--with-rocm],
    [with_rocm=${ROCM_PATH:-/opt/rocm} rocm_named=${ROCM_PATH:+ROCM_PATH}])
  AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda=DIR],
    [CUDA's folder @<:@that of nvcc@:>@])], [], [with_cuda=/usr/local/cuda])
  AC_ARG_WITH([gpu-arch], [AS_HELP_STRING([--with-gpu-arch=LIST],
    [GPUs to compile kernels for, such as gfx90a,gfx942 or sm_90])])
  have_hip=0 hip_nvidia=0 hip_fake=0 iris_backends=sim
  AS_CASE([$with_backend], [sim], [], [hip|all], [have_hip=1; IRIS_HIP_FIND],
    [AC_MSG_ERROR([--with-backend=$with_backend: not one of sim, hip, all])])
  AC_DEFINE_UNQUOTED([HAVE_HIP], [$have_hip], [1 if there is a hip module])
  AC_DEFINE_UNQUOTED([IRIS_HIP_NVIDIA], [$hip_nvidia],
    [1 if the hip module is for NVIDIA GPUs])
  AC_DEFINE_UNQUOTED([IRIS_HIP_FAKE], [$hip_fake],
    [1 if the hip module is for the tests' runtime])
  AM_CONDITIONAL([HAVE_HIP], [test $have_hip = 1])
  dnl Modules of libraries of products, which they find at run time.
  AS_CASE([$IRIS_GPU_PLATFORM], [fake], [cublaslt=1 hipblaslt=1],
    [nvidia], [cublaslt=1 hipblaslt=0], [amd], [cublaslt=0 hipblaslt=1],
    [cublaslt=0 hipblaslt=0])
  have_cublaslt_h=0 iris_save_CPPFLAGS=$CPPFLAGS
  CPPFLAGS="$CPPFLAGS $CUBLAS_CPPFLAGS"
  AS_IF([test $cublaslt = 1],
    [AC_CHECK_HEADER([cublasLt.h], [have_cublaslt_h=1])])
  CPPFLAGS=$iris_save_CPPFLAGS
  AC_DEFINE_UNQUOTED([HAVE_CUBLASLT_H], [$have_cublaslt_h],
    [1 if cuBLASLt's header is there to check its module])
  AC_DEFINE_UNQUOTED([HAVE_CUBLASLT], [$cublaslt],
    [1 if there is a cublaslt module])
  AC_DEFINE_UNQUOTED([HAVE_HIPBLASLT], [$hipblaslt],
    [1 if there is a hipblaslt module])
  AM_CONDITIONAL([HAVE_CUBLASLT], [test $cublaslt = 1])
  AM_CONDITIONAL([HAVE_HIPBLASLT], [test $hipblaslt = 1])
  AM_CONDITIONAL([FAKE_HIP], [test "$IRIS_GPU_PLATFORM" = fake])
  m4_map_args([AC_SUBST], [with_backend], [HIP_CPPFLAGS], [HIP_LIBS], [CUBLAS_CPPFLAGS],
    [IRIS_GPU_CC], [IRIS_GPU_PLATFORM], [IRIS_GPU_ARCHS])
  AC_CONFIG_FILES([iriscc:tools/iriscc.in], [chmod +x iriscc])
])

dnl IRIS_HIP_FIND: the runtime and the compiler, or an error.
AC_DEFUN([IRIS_HIP_FIND], [
  AC_PATH_PROG([HIPCC], [hipcc], [], [$with_rocm/bin:$PATH])
  AC_PATH_PROG([NVCC], [nvcc], [], [$with_cuda/bin:$PATH])
  AS_CASE([$with_hip_platform:$HIPCC:$NVCC],
    [fake:*], [IRIS_GPU_PLATFORM=fake],
    [amd:?*:*|:?*:*], [IRIS_GPU_PLATFORM=amd],
    [nvidia:*:?*|::?*], [IRIS_GPU_PLATFORM=nvidia],
    [amd:*|nvidia:*|:*], [AC_MSG_ERROR([--with-backend=$with_backend: no m4_normalize(
      [compiler for GPUs found: hipcc (AMD) or nvcc (NVIDIA). Install ROCm or
       CUDA, name its folder with --with-rocm or --with-cuda, or configure
       --with-backend=sim])])],
    [AC_MSG_ERROR([--with-hip-platform=$with_hip_platform: amd or nvidia])])
  gpu_header=hip/hip_runtime_api.h HIP_CPPFLAGS=-D__HIP_PLATFORM_AMD__=1
  AS_CASE([$IRIS_GPU_PLATFORM],
    dnl Tests: CPU versions stand in for GPU code (tests/fakehip). Why -Wl: install.sh
    [fake], [hip_fake=1; fake=`cd "$srcdir" && pwd`/tests/fakehip
      CC="$CC -I$fake -include $fake/choose_fake.h"
      HIP_LIBS="-Wl,`pwd`/.libs/libfakehip.so,-rpath,`pwd`/.libs"],
    [amd], [IRIS_GPU_CC=$HIPCC HIP_LIBS=-lamdhip64
      IRIS_HIP_ROCM],
    dnl cuBLASLt's headers have warnings
    [hip_nvidia=1 CUBLAS_CPPFLAGS="-isystem `AS_DIRNAME(["$NVCC"])`/../include" IRIS_GPU_CC=$NVCC gpu_header=cuda_runtime_api.h
      cuda=`AS_DIRNAME(["$NVCC"])`/..
      HIP_CPPFLAGS="-I$cuda/include" HIP_LIBS="-Wl,-rpath,$cuda/lib64"
      HIP_LIBS="-L$cuda/lib64 -L$cuda/lib64/stubs -lcudart -lcuda $HIP_LIBS"
      AS_IF([nvidia-smi -L >/dev/null 2>&1],
        [IRIS_GPU_ARCHS=native], [IRIS_GPU_ARCHS=sm_80,sm_90])])
  AS_IF([test -n "$with_gpu_arch"], [IRIS_GPU_ARCHS=$with_gpu_arch])
  iris_save_CPPFLAGS=$CPPFLAGS CPPFLAGS="$CPPFLAGS $HIP_CPPFLAGS"
  AC_CHECK_HEADER([$gpu_header], [],
    [AC_MSG_ERROR([--with-backend=$with_backend: no <$gpu_header>; m4_normalize(
      [install libamdhip64-dev, ROCm or CUDA, or name its folder])])])
  AC_CHECK_DECLS([hipDeviceAttributeWallClockRate, hipMemAllocationTypeUncached],
    [], [], [[#include <$gpu_header>]])
  CPPFLAGS=$iris_save_CPPFLAGS
  iris_backends="sim, hip ($IRIS_GPU_PLATFORM${IRIS_GPU_CC:+: $IRIS_GPU_ARCHS, $IRIS_GPU_CC})"
])

dnl IRIS_HIP_ROCM: headers that belong to hipcc, and GPUs that it compiles for.
AC_DEFUN([IRIS_HIP_ROCM], [
  version_h=include/hip/hip_version.h
  AS_IF([test -z "$rocm_named" && test ! -e "$with_rocm/$version_h"],
    [rocm=`readlink -f "$HIPCC"` && rocm=`AS_DIRNAME(["$rocm"])`/..
     AS_IF([test -e "$rocm/$version_h"], [with_rocm=`cd "$rocm" && pwd`])])
  AS_IF([test -e "$with_rocm/$version_h"],
    [AS_IF([test "$with_rocm" != /usr], [HIP_CPPFLAGS="-I$with_rocm/include $HIP_CPPFLAGS"
       HIP_LIBS="-L$with_rocm/lib $HIP_LIBS"])],
    [test -n "$rocm_named"], [AC_MSG_ERROR([$rocm_named=$with_rocm: no $version_h m4_normalize(
      [there; name the folder of a ROCm that has HIP's headers])])])
  iris_save_CPPFLAGS=$CPPFLAGS CPPFLAGS="$CPPFLAGS $HIP_CPPFLAGS"
  AC_COMPUTE_INT([hip_major], [HIP_VERSION_MAJOR], [[#include <hip/hip_version.h>]], [hip_major=])
  AC_COMPUTE_INT([hip_minor], [HIP_VERSION_MINOR], [[#include <hip/hip_version.h>]], [hip_minor=])
  CPPFLAGS=$iris_save_CPPFLAGS
  hipcc_version=`$HIPCC --version 2>/dev/null | sed -n 's/^HIP version: *\(@<:@0-9@:>@*\.@<:@0-9@:>@*\).*/\1/p'`
  AS_CASE([$hipcc_version:$hip_major], [:*|*:], [],
    [$hip_major.$hip_minor:*], [],
    [AC_MSG_ERROR([the headers are of HIP $hip_major.$hip_minor, but $HIPCC is of m4_normalize(
      [$hipcc_version; name the folder of one ROCm with --with-rocm or ROCM_PATH])])])
  echo 'void f(void) {}' >conftest.hip
  for arch in `echo "${with_gpu_arch:-gfx90a,gfx942,gfx950}" | tr , ' '`; do
    AS_IF([$HIPCC --genco --offload-arch=$arch -o conftest.co conftest.hip 2>conftest.why],
      [IRIS_GPU_ARCHS=${IRIS_GPU_ARCHS:+$IRIS_GPU_ARCHS,}$arch],
      [test -n "$with_gpu_arch"], [IRIS_GPU_ARCHS= && break])
  done
  why=`tail -n 1 conftest.why`
  AS_IF([test -z "$IRIS_GPU_ARCHS"],
    [AC_MSG_ERROR([$HIPCC does not compile for ${with_gpu_arch:-gfx90a, gfx942 or gfx950}: m4_normalize(
      [$why. Name GPUs that it knows with --with-gpu-arch, or
       another ROCm with --with-rocm])])])
])
