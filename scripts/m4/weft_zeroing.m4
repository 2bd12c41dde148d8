# SPDX-License-Identifier: BSD-2-Clause
# WEFT_ZEROING
# ------------
# Sets ZEROING_FLAGS, by which structs are zeroed and copied by plain stores.  For x86 in general
# GCC takes "rep stos" and "rep movs", which need some 30 cycles to begin.
AC_DEFUN([WEFT_ZEROING], [
  weft_stores='unrolled_loop:256:noalign,libcall:-1:noalign'
  weft_stores="-mmemset-strategy=$weft_stores -mmemcpy-strategy=$weft_stores"
  AC_CACHE_CHECK([whether $CC can zero structs by stores], [weft_cv_zeroing], [
    weft_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -Werror $weft_stores"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])], [weft_cv_zeroing=yes], [weft_cv_zeroing=no])
    CFLAGS=$weft_save_CFLAGS
  ])
  AS_IF([test "$weft_cv_zeroing" = yes], [ZEROING_FLAGS=$weft_stores])
  AC_SUBST([ZEROING_FLAGS])
])
