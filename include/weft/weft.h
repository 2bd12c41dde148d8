/* SPDX-License-Identifier: BSD-2-Clause */
/* weft: tensors and remote procedure calls over any fabric. */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <weft/attachment.h>
#include <weft/base.h>
#include <weft/broadcast.h>
#include <weft/collective.h>
#include <weft/group.h>
#include <weft/info.h>
#include <weft/intercept.h>
#include <weft/landing.h>
#include <weft/match.h>
#include <weft/memory.h>
#include <weft/node.h>
#include <weft/queue.h>
#include <weft/recv_set.h>
#include <weft/rpc.h>
#include <weft/security.h>
#include <weft/serve.h>
#include <weft/served.h>
#include <weft/step.h>
#include <weft/stream.h>
#include <weft/tensor.h>
#include <weft/topology.h>
#include <weft/window.h>

#endif
