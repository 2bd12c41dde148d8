/* SPDX-License-Identifier: BSD-2-Clause */
#include "fetch.h"

#include <cerrno>

#include "body.h"
#include "counters.h"
#include "device.h"
#include "hello.h"
#include "status.h"

namespace weft_tensorflow {

using tensorflow::mutex_lock;

/* A task that was lost has as long to answer a question, which any server does at once. */
constexpr int64_t kAnswerMs = 5000;

/* The question whether a task speaks weft, and its answer. */
struct Fetch::Question {
	tensorflow::RecvTensorRequest request;
	tensorflow::TensorResponse response;
	bool limited; /* to kAnswerMs */
};

Fetch::Fetch(TransportPtr transport, Run run,
	     std::shared_ptr<tensorflow::WorkerCacheInterface> cache, Origin origin)
	: transport_(std::move(transport)), run_(std::move(run)), cache_(std::move(cache)),
	  origin_(std::move(origin))
{
}

Fetch::~Fetch()
{
	weft_op_free(body_);
	weft_op_free(call_);
	if (worker_)
		cache_->ReleaseWorker(origin_.task, worker_);
}

void Fetch::cancel(const absl::Status &status)
{
	{
		mutex_lock l(mu_);

		status_.Update(status);
		if (body_)
			weft_cancel(body_);
		if (call_)
			weft_cancel(call_);
	}
	opts_.StartCancel();
}

absl::Status Fetch::status() const
{
	mutex_lock l(mu_);

	return status_;
}

void Fetch::begin(tensorflow::DeviceBase *device)
{
	peer_ = transport_->find(origin_.task, origin_.incarnation);
	if (!peer_)
		ask(device);
	else if (peer_->stub)
		by_weft();
	else
		without_weft();
}

void Fetch::rpc(const tensorflow::RecvTensorRequest *request, tensorflow::TensorResponse *response,
		std::function<void(const absl::Status &)> then)
{
	if (!worker_)
		worker_ = cache_->GetOrCreateWorker(origin_.task);
	if (!worker_) {
		finish(absl::InternalError("no worker is known as " + origin_.task));
		return;
	}
	/* The answer may come, and the fetch end, before this function has. */
	Ref();
	worker_->RecvTensorAsync(&opts_, request, response, std::move(then));
	/* A cancel before the request was on its way had nothing to cancel. */
	if (!status().ok())
		opts_.StartCancel();
	Unref();
}

void Fetch::ask(tensorflow::DeviceBase *device)
{
	tensorflow::AllocatorAttributes host;

	host.set_on_host(true);
	question_ = std::make_unique<Question>();
	hello_ask(&question_->request);
	question_->response.InitAlloc(device, host);
	/* gRPC itself would wait for one that stands still, in each step anew. */
	question_->limited = transport_->is_lost(origin_.task);
	if (question_->limited)
		opts_.SetTimeout(kAnswerMs);
	rpc(&question_->request, &question_->response,
	    [this](const absl::Status &status) { asked(status); });
}

/*
 * Returns gRPC's words about @task, which fails: programs know by them which task did, and that it
 * is @lost.
 */
static std::string remote_words(const std::string &task, bool lost)
{
	return "\nAdditional GRPC error information from remote target " + task + ": " +
	       (lost ? "failed to connect to all addresses; " : "") + "the call went over weft";
}

void Fetch::asked(const absl::Status &status)
{
	std::string hello = status.ok() ? hello_get(question_->response.metadata()) : "";
	bool late = question_->limited && absl::IsDeadlineExceeded(status);

	if (status.ok() || absl::IsInvalidArgument(status))
		peer_ = transport_->learn(origin_.task, origin_.incarnation, hello);
	question_.reset();
	if (late) {
		std::string why = "the task was lost, and does not answer" +
				  remote_words(origin_.task, true);

		finish(status_of(WEFT_UNAVAILABLE, text(), why.c_str()));
		return;
	}
	/* A request for the tensor itself may take its time. */
	opts_.SetTimeout(0);
	/* A task that did not answer gets the request itself, which fails as ever. */
	if (peer_ && peer_->stub)
		by_weft();
	else
		without_weft();
}

/* Leave the fetch to gRPC, unless it has been cancelled. */
void Fetch::without_weft()
{
	absl::Status failed = status();

	if (failed.ok())
		by_grpc();
	else
		finish(failed);
}

/* Ask over weft.  A task that weft has not reached yet is pinged first. */
void Fetch::by_weft()
{
	absl::Status failed;
	int err = 0;
	bool short_of_memory;

	Ref();
	{
		/* A cancel ends what has begun, and what has not begun by then never does. */
		mutex_lock l(mu_);

		weft_op_free(call_);
		call_ = nullptr;
		failed = status_;
		if (failed.ok())
			err = peer_->reached ? open_call() : ping();
		/* A fetch without memory goes by gRPC, as one whose call ends with RESOURCE_EXHAUSTED. */
		short_of_memory = err == -ENOMEM;
		if (err && !short_of_memory)
			failed = status_of_error(err, text());
	}
	if (short_of_memory)
		without_weft();
	else if (!failed.ok())
		finish(failed);
	Unref();
}

/* Ping the task.  The fetch is locked. */
int Fetch::ping()
{
	struct weft_op_options o = WEFT_OP_OPTIONS_INIT;
	int err;

	o.timeout_ns = kReachNs;
	o.arg = this;
	o.done = [](weft_op *op, void *arg) { static_cast<Fetch *>(arg)->ping_ended(op); };
	err = weft_ping(peer_->peer, &o, &call_);
	if (!err)
		Ref(); /* until ping_ended() */
	return err;
}

/* The end of the ping, on weft's thread.  The task has not been asked for anything so far. */
void Fetch::ping_ended(weft_op *op)
{
	enum weft_status code = weft_op_status(op);

	if (code == WEFT_OK) {
		peer_->reached = true;
		run_([this] { by_weft(); });
	} else if (!status().ok()) {
		/* Steps may be too short to find out. */
		transport_->probe(peer_);
		finish(status());
	} else {
		fail_call(op, true);
	}
	Unref();
}

/* Call the task's service.  The fetch is locked. */
int Fetch::open_call()
{
	struct weft_call_options o = WEFT_CALL_OPTIONS_INIT;
	ProtobufCService *service;
	int err;

	/* A step takes its time; TensorFlow cancels, and weft sees a peer that is lost. */
	o.op.timeout_ns = WEFT_FOREVER;
	o.op.arg = this;
	o.op.done = [](weft_op *op, void *arg) { static_cast<Fetch *>(arg)->call_ended(op); };
	err = weft_call_open(peer_->stub, &o, &service, &call_);
	if (err)
		return err;
	Ref(); /* until call_ended() */
	call(service,
	     [](const Weft__Tensorflow__Have *have, void *arg) {
		     if (have)
			     static_cast<Fetch *>(arg)->came(have);
	     },
	     this);
	return 0;
}

/* The end of the call, on weft's thread: a reply has come before, or never comes. */
void Fetch::call_ended(weft_op *op)
{
	if (weft_op_status(op) != WEFT_OK)
		fail_call(op, weft_op_executed(op) == WEFT_EXECUTED_NO);
	Unref();
}

/* The reply, on weft's thread. */
void Fetch::came(const Weft__Tensorflow__Have *have)
{
	absl::Status failed;
	void *into = nullptr;
	size_t bytes;

	{
		mutex_lock l(mu_);

		failed = status_;
		bytes = body_bytes(weft_op_attachment(call_, 0, nullptr));
	}
	/* The sender has given its tensor away: from now on gRPC would ask for it in vain. */
	transport_->came(peer_.get(), "");
	if (failed.ok())
		failed = accept(have, bytes, &into);
	if (failed.ok() && into) {
		read(into, bytes);
		return;
	}
	came_ = failed.ok();
	finish(failed);
}

/* Read the @bytes of the attachment. */
void Fetch::read(void *into, size_t bytes)
{
	struct weft_recv_options o = WEFT_RECV_OPTIONS_INIT;
	int64_t length = static_cast<int64_t>(bytes);
	struct weft_tensor body = body_of(into, &length);
	absl::Status failed;
	int err = 0;

	o.op.timeout_ns = WEFT_FOREVER;
	o.op.arg = this;
	o.op.done = [](weft_op *op, void *arg) { static_cast<Fetch *>(arg)->body_ended(op); };
	Ref();
	{
		mutex_lock l(mu_);

		failed = status_;
		if (failed.ok())
			err = weft_op_receive(call_, 0, &body, &o, &body_);
		if (err)
			failed = status_of_error(err, text());
	}
	if (!failed.ok())
		finish(failed);
	Unref();
}

/* The end of the attachment, on weft's thread. */
void Fetch::body_ended(weft_op *op)
{
	unsigned flags = 0;

	if (weft_op_status(op) != WEFT_OK) {
		/* The reply has come, but for its attachment the peer is to be there, too. */
		fail_weft(op, false);
		return;
	}
	(void)weft_op_tensor(op, &flags);
	if (flags & WEFT_DEAD) {
		finish(absl::DataLossError(text() + ": " + origin_.task +
					   " tells of a tensor, and sent a dead one"));
		return;
	}
	transport_->came(peer_.get(), counters_path("received", op));
	came_ = true;
	finish(absl::OkStatus());
}

/*
 * Tell of a call or ping that has failed, unless it was @unheard, and gRPC can do what weft could
 * not with this peer, or a new link what a dead one could not.
 */
void Fetch::fail_call(weft_op *op, bool unheard)
{
	enum weft_status code = weft_op_status(op);

	unheard = unheard && code != WEFT_CANCELLED && status().ok();
	if (unheard && code == WEFT_UNAVAILABLE && !again_) {
		/* A peer that stood still has links that are dead, and may be there over a new. */
		again_ = true;
		run_([this] { by_weft(); });
	} else if (unheard && code == WEFT_RESOURCE_EXHAUSTED) {
		/* Memory that is short now may be there for the next fetch. */
		run_([this] { without_weft(); });
	} else if (unheard && !peer_->met) {
		/* Other users, other releases and other networks, whatever the status. */
		transport_->avoid(peer_, weft_op_message(op));
		run_([this] { without_weft(); });
	} else {
		fail_weft(op, weft_op_executed(op) == WEFT_EXECUTED_YES);
	}
}

/* Tell of a failure of weft's.  A peer that has @answered is not lost, be it with UNAVAILABLE. */
void Fetch::fail_weft(weft_op *op, bool answered)
{
	enum weft_status code = weft_op_status(op);
	const char *why = weft_op_message(op);
	bool live = !answered && status().ok();
	bool lost = live && code == WEFT_UNAVAILABLE;
	const void *details;
	size_t bytes;
	absl::Status failed;

	if (answered)
		transport_->came(peer_.get(), "");
	if (lost)
		transport_->forget(peer_, why);
	/* Nobody here has cancelled: the peer has withdrawn what it had offered. */
	if (live && code == WEFT_CANCELLED)
		code = WEFT_UNAVAILABLE;
	failed = status_of(code, text(), (why + remote_words(origin_.task, lost)).c_str());
	details = weft_call_details(op, &bytes);
	status_add_details(&failed, details, details ? bytes : 0);
	finish(failed);
}

void Fetch::copy_to_device(const tensorflow::Tensor &host, tensorflow::Device *device,
			   tensorflow::DeviceContext *context, tensorflow::Tensor *to)
{
	counters_add("received_copied");
	device_from_host(host, device, context, to, [this](const absl::Status &status) {
		note(status);
		/* The device's thread goes on with other copies; the fetch may be gone inside. */
		Ref();
		run_([this] { copied(); });
		Unref();
	});
}

void Fetch::note(const absl::Status &status)
{
	mutex_lock l(mu_);

	status_.Update(status);
}

void Fetch::finish(const absl::Status &status)
{
	note(status);
	/* The fetch may be gone before the function that runs ended() has returned. */
	Ref();
	run_([this] { ended(); });
	Unref();
}

}  // namespace weft_tensorflow
