# SPDX-License-Identifier: BSD-2-Clause
# WEFT_LIBFABRIC
# --------------
# Finds libfabric's headers, and how a program that is linked with it here finds
# libfabric at run time: the name of the library's file, and the version of each
# function that is called by name.  weft loads that file itself, and asks for just
# these versions: a later one of the same name has larger structures than the
# headers here.
#
# WEFT_LIBFABRIC_VERSION(FUNCTION, MACRO) defines MACRO as the version of FUNCTION
# that conftest.so needs; a libfabric built without versions has "".
AC_DEFUN([WEFT_LIBFABRIC_VERSION], [
  weft_version=`$OBJDUMP -T conftest.so | sed -n ['s/^.*[*]UND[*].*[ (]\(FABRIC_[0-9.]*\))* *$1$/\1/p']`
  AC_DEFINE_UNQUOTED([$2], ["$weft_version"], [version of $1 that the headers are of])
  weft_versions="$weft_versions $1@$weft_version"
])
AC_DEFUN([WEFT_LIBFABRIC], [
  PKG_CHECK_MODULES([LIBFABRIC], [libfabric >= 1.17])
  AC_CHECK_TOOL([OBJDUMP], [objdump], [false])
  AC_MSG_CHECKING([for libfabric's file and functions])
  cat >conftest.c <<'EOF'
#include <rdma/fabric.h>
void *const all[[]] = { fi_getinfo, fi_freeinfo, fi_dupinfo, fi_fabric, fi_version };
EOF
  rm -f conftest.so
  $CC $CPPFLAGS $LIBFABRIC_CFLAGS $CFLAGS -fPIC -shared -o conftest.so conftest.c \
    $LDFLAGS $LIBFABRIC_LIBS 2>&AS_MESSAGE_LOG_FD
  LIBFABRIC_FILE=`$OBJDUMP -p conftest.so 2>&AS_MESSAGE_LOG_FD |
    sed -n 's/^ *NEEDED *\(libfabric[[^ ]]*\)$/\1/p'`
  AS_IF([test -z "$LIBFABRIC_FILE"],
    [AC_MSG_RESULT([none])
     AC_MSG_ERROR([nothing can be linked with libfabric as a shared library, or objdump is missing])])
  weft_versions=
  WEFT_LIBFABRIC_VERSION([fi_getinfo], [WF_FI_GETINFO_VERSION])
  WEFT_LIBFABRIC_VERSION([fi_freeinfo], [WF_FI_FREEINFO_VERSION])
  WEFT_LIBFABRIC_VERSION([fi_dupinfo], [WF_FI_DUPINFO_VERSION])
  WEFT_LIBFABRIC_VERSION([fi_fabric], [WF_FI_FABRIC_VERSION])
  WEFT_LIBFABRIC_VERSION([fi_version], [WF_FI_VERSION_VERSION])
  rm -f conftest.c conftest.so
  AC_DEFINE_UNQUOTED([WF_LIBFABRIC_FILE], ["$LIBFABRIC_FILE"], [what to load])
  AC_MSG_RESULT([$LIBFABRIC_FILE:$weft_versions])
])
