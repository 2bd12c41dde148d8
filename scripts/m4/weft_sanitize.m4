# SPDX-License-Identifier: BSD-2-Clause
# WEFT_SANITIZE
# -------------
# --enable-sanitize=LIST passes LIST to -fsanitize, after proving that a
# program built with it runs.  What a sanitizer finds ends the program.  Pieces
# of memory then do not go round (util/freelist.h), or it would miss their misuse.
AC_DEFUN([WEFT_SANITIZE], [
  AC_ARG_ENABLE([sanitize],
    [AS_HELP_STRING([--enable-sanitize=LIST],
                    [address,undefined or thread @<:@no@:>@])],
    [], [enable_sanitize=no])
  AS_IF([test "$enable_sanitize" != no], [
    SANITIZE_FLAGS="-fsanitize=$enable_sanitize -fno-sanitize-recover=all -fno-omit-frame-pointer"
    SANITIZE_FLAGS="$SANITIZE_FLAGS -DWF_FREELIST_BYTES_MAX=0"
    weft_save_CFLAGS=$CFLAGS
    # clang from 17 on looks at the types of C functions that are called through pointers, and
    # protobuf-c's closures and services are called by others than theirs.
    CFLAGS="$CFLAGS -fno-sanitize=function"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
      [SANITIZE_FLAGS="$SANITIZE_FLAGS -fno-sanitize=function"])
    CFLAGS="$weft_save_CFLAGS $SANITIZE_FLAGS"
    AC_MSG_CHECKING([whether -fsanitize=$enable_sanitize works])
    AC_RUN_IFELSE([AC_LANG_PROGRAM([], [])],
      [AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no])
       AC_MSG_ERROR([a program built with -fsanitize=$enable_sanitize does not run here])],
      [AC_MSG_RESULT([not tried: cross-compiling])])
    CFLAGS=$weft_save_CFLAGS
  ])
  AC_SUBST([SANITIZE_FLAGS])
])
