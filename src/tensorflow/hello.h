/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hellos: how tasks find out over gRPC who speaks weft.
 *
 * A RecvTensor whose rendezvous key is kHelloKey asks for a hello; the answer carries it in its
 * transport_options.  The key is none of TensorFlow's, so a server without the plug-in refuses it
 * with INVALID_ARGUMENT.  A hello is the address of a node and a random number of its life.
 *
 * Threads: any.
 */
#ifndef WEFT_TENSORFLOW_HELLO_H
#define WEFT_TENSORFLOW_HELLO_H

#include <string>

#include <tensorflow/core/protobuf/worker.pb.h>

namespace weft_tensorflow {

extern const char kHelloKey[];

/* Returns a hello of the node at @address, of a life of its own. */
std::string hello_make(const std::string &address);

/* Returns the address in @hello; "": it is no hello. */
std::string hello_address(const std::string &hello);

/* Turn @request into the question for a hello. */
void hello_ask(tensorflow::RecvTensorRequest *request);

/* Put @hello into @response. */
void hello_put(const std::string &hello, tensorflow::RecvTensorResponse *response);

/* Returns the hello in @response; "": there is none. */
std::string hello_get(const tensorflow::RecvTensorResponse &response);

}  // namespace weft_tensorflow

#endif
