/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A service in words of reflect.proto, made of what protoc-c knows of it.
 *
 * Threads: any.
 */
#ifndef WF_REFLECT_H
#define WF_REFLECT_H

#include "rpc/service.h"
#include "rpc/reflect.pb-c.h"

/* For protobuf_c_message_free_unpacked(), as what is unpacked.  NULL: no memory. */
Weft__Reflect__Description *wf_reflect_describe(const struct wf_pb_service *service);

#endif
