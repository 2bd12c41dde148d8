# SPDX-License-Identifier: BSD-2-Clause
# WEFT_FUZZ
# ---------
# --enable-fuzz makes the programs of tests/fuzz with clang's libFuzzer, which
# looks at what of the library an input reaches, and with address and
# undefined-behaviour sanitizers.  It stands before WEFT_SANITIZE, which does
# those.
AC_DEFUN([WEFT_FUZZ], [
  AC_ARG_ENABLE([fuzz],
    [AS_HELP_STRING([--enable-fuzz],
                    [make fuzzers with libFuzzer, for scripts/fuzz (needs clang) @<:@no@:>@])],
    [], [enable_fuzz=no])
  AS_IF([test "$enable_fuzz" != no], [
    AS_IF([test "${enable_sanitize-no}" != no],
      [AC_MSG_ERROR([--enable-fuzz brings its own sanitizers: leave out --enable-sanitize])])
    weft_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -fsanitize=fuzzer"
    AC_MSG_CHECKING([whether $CC has libFuzzer])
    AC_LINK_IFELSE([AC_LANG_SOURCE([[#include <stddef.h>
int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);
int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count) { return !bytes && count; }
]])],
      [AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no])
       AC_MSG_ERROR([--enable-fuzz needs clang and its libFuzzer (Debian: clang, libclang-rt-dev), and CC=clang])])
    CFLAGS=$weft_save_CFLAGS
    FUZZ_LDFLAGS=-fsanitize=fuzzer
    enable_sanitize=fuzzer-no-link,address,undefined
  ])
  AC_SUBST([FUZZ_LDFLAGS])
  AM_CONDITIONAL([FUZZ], [test "$enable_fuzz" != no])
])
