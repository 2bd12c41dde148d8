# SPDX-License-Identifier: BSD-2-Clause
# WEFT_CUDA
# ---------
# Finds CUDA's headers, with which a test compares the numbers and versions that
# weft has of the driver, and CUDA's runtime, for an example.  Nothing else needs
# them.
AC_DEFUN([WEFT_CUDA], [
  AC_MSG_CHECKING([for CUDA's headers])
  have_cuda=no
  weft_save_CPPFLAGS=$CPPFLAGS
  for weft_flags in "" "-I${CUDA_HOME:-/usr/local/cuda}/include"; do
    CPPFLAGS="$weft_save_CPPFLAGS $weft_flags"
    AS_IF([test "$have_cuda" = no],
      [AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <cudaTypedefs.h>]],
                                          [[CUdeviceptr at = 0; (void)at;]])],
        [have_cuda=yes
         CUDA_CFLAGS=$weft_flags])])
  done
  AC_MSG_RESULT([$have_cuda])

  AC_MSG_CHECKING([for CUDA's runtime])
  have_cudart=no
  CPPFLAGS="$weft_save_CPPFLAGS $CUDA_CFLAGS"
  weft_save_LIBS=$LIBS
  weft_dir=${CUDA_HOME:-/usr/local/cuda}/lib64
  for weft_libs in "-lcudart" "-L$weft_dir -Wl,-rpath,$weft_dir -lcudart"; do
    LIBS="$weft_libs $weft_save_LIBS"
    AS_IF([test "$have_cudart" = no],
      [AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cuda_runtime_api.h>]],
                                       [[return cudaGetDevice((int *)0);]])],
        [have_cudart=yes
         CUDART_LIBS=$weft_libs])])
  done
  LIBS=$weft_save_LIBS
  CPPFLAGS=$weft_save_CPPFLAGS
  AC_MSG_RESULT([$have_cudart])

  AC_SUBST([CUDA_CFLAGS])
  AC_SUBST([CUDART_LIBS])
  AM_CONDITIONAL([HAVE_CUDA], [test "$have_cuda" = yes])
  AM_CONDITIONAL([HAVE_CUDART], [test "$have_cudart" = yes])
])
