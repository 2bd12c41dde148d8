# SPDX-License-Identifier: BSD-2-Clause
# WEFT_CUDA
# ---------
# Finds CUDA's headers, with which a test compares the numbers and versions that
# weft has of the driver.  Nothing else needs them.
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
  CPPFLAGS=$weft_save_CPPFLAGS
  AC_MSG_RESULT([$have_cuda])
  AC_SUBST([CUDA_CFLAGS])
  AM_CONDITIONAL([HAVE_CUDA], [test "$have_cuda" = yes])
])
