# SPDX-License-Identifier: BSD-2-Clause
# WEFT_PROTOC_C
# -------------
# Sets PROTOC_C to the program that turns a .proto into C.  protobuf-c up to
# 1.5 calls it protoc-c; later it is a plug-in that protoc finds by its name.
AC_DEFUN([WEFT_PROTOC_C], [
  AC_ARG_VAR([PROTOC_C], [compiler of .proto files that takes --c_out])
  AC_CHECK_PROGS([PROTOC_C], [protoc-c])
  AS_IF([test -z "$PROTOC_C"], [
    AC_CHECK_PROG([weft_protoc_gen_c], [protoc-gen-c], [protoc])
    AC_CHECK_PROGS([PROTOC_C], [$weft_protoc_gen_c])
  ])
  AS_IF([test -z "$PROTOC_C"],
        [AC_MSG_ERROR([neither protoc-c nor protoc with protoc-gen-c is installed])])
])
