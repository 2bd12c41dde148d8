/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A service in terms of reflect.proto, made from protoc-c's descriptors.
 *
 * Threads: any.
 */
#ifndef WF_REFLECT_H
#define WF_REFLECT_H

#include "rpc/service.h"
#include "rpc/reflect.pb-c.h"

/* Describe @service.  Returns owned, for protobuf_c_message_free_unpacked().  NULL: no memory. */
Weft__Reflect__Description *wf_reflect_describe(const struct wf_service_pb *service);

#endif
