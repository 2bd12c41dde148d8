/* SPDX-License-Identifier: BSD-2-Clause */
/* What both sides of gRPC's interoperability tests know: the methods with streams. */
#ifndef INTEROP_H
#define INTEROP_H

#include <weft/weft.h>

#include "tests/conformance/grpc/backend.pb-c.h"
#include "tests/conformance/grpc/interop.pb-c.h"

/* Short names for what protoc-c made. */
typedef Grpc__Testing__Empty Empty;
typedef Grpc__Testing__Payload Payload;
typedef Grpc__Testing__SimpleRequest SimpleRequest;
typedef Grpc__Testing__SimpleResponse SimpleResponse;
typedef Grpc__Testing__StreamingInputCallRequest InputRequest;
typedef Grpc__Testing__StreamingInputCallResponse InputResponse;
typedef Grpc__Testing__StreamingOutputCallRequest OutputRequest;
typedef Grpc__Testing__StreamingOutputCallResponse OutputResponse;
typedef Grpc__Testing__ResponseParameters ResponseParameters;

WEFT_STREAM_TYPES(input, InputRequest, InputResponse);
WEFT_STREAM_TYPES(output, OutputRequest, OutputResponse);

#define ECHO_INITIAL "x-grpc-test-echo-initial"
#define ECHO_TRAILING "x-grpc-test-echo-trailing-bin"

#endif
