/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/last.h"
#include "core/node.h"
#include "fabric/cudart.h"
#include "link/host.h"
#include "memory/cuda.h"
#include "memory/monitor.h"
#include "transfer/plan.h"

struct weft_info {
	struct wf_options options;
	struct wf_select select;
	struct wf_error cuda; /* the driver's sentence; code 0: no failure */
	char cudart[WF_CUDART_TEXT_BYTES];
	char mode[WF_OPTION_TEXT_BYTES], identity[WF_IDENTITY_BYTES];
	char security[WF_ERROR_BYTES]; /* the mode in words, or why no node would open */
	char cached[WF_ERROR_BYTES]; /* as weft_fabric says it of rails where registering is dear */
};

/* Would a node keep registrations? */
static void see_cache(struct weft_info *info)
{
	struct wf_error why;

	if (!info->options.cached_bytes)
		snprintf(info->cached, sizeof(info->cached), "no: WEFT_CACHED_BYTES is 0");
	else if (wf_monitor_open(&why))
		snprintf(info->cached, sizeof(info->cached), "no: %.400s", why.text);
	else
		snprintf(info->cached, sizeof(info->cached), "yes");
	if (!strcmp(info->cached, "yes"))
		wf_monitor_close();
}

/* A node leaves same-host rails out where this host lacks what they need. */
static void see_host(struct weft_info *info)
{
	struct wf_host *host;
	struct wf_error why;

	if (wf_host_open(&host, &why))
		wf_select_without_host(&info->select, why.text);
	else
		wf_host_close(host);
}

/* An info holds the providers that @ask finds. */
static int open_by(int (*ask)(const struct wf_options *options, struct wf_select *select,
			      struct wf_error *e),
		   const struct weft_node_options *options, struct weft_info **info)
{
	struct weft_node_options given;
	struct weft_info *fresh;
	struct wf_error e;
	int err;

	if (WF_NEED(info))
		return -EINVAL;
	err = wf_check_options(options, &given, sizeof(given));
	if (err)
		return err;
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return wf_last_set(-ENOMEM, "no memory for an info");
	err = wf_node_settings(&given, &fresh->options);
	if (err)
		goto free_info;
	err = ask(&fresh->options, &fresh->select, &e);
	if (err) {
		wf_last_copy(&e);
		goto free_info;
	}
	see_host(fresh);
	see_cache(fresh);
	*info = fresh;
	return 0;

free_info:
	free(fresh);
	return err;
}

int weft_info_open(const struct weft_node_options *options, struct weft_info **info)
{
	return open_by(wf_select_open, options, info);
}

int weft_info_look(const struct weft_node_options *options, struct weft_info **info)
{
	return open_by(wf_select_look, options, info);
}

void weft_info_close(struct weft_info *info)
{
	if (!info)
		return;
	wf_select_close(&info->select);
	free(info);
}

size_t weft_info_count(const struct weft_info *info)
{
	return WF_NEED(info) ? 0 : info->select.count;
}

int weft_info_get(const struct weft_info *info, size_t index, struct weft_fabric *fabric)
{
	static const char *const waits[] = { "none", "level", "edge", "pollfd", "doorbell" };
	const struct wf_select_candidate *c;
	struct weft_fabric f;

	if (WF_NEED(info) || WF_NEED_SIZED(fabric))
		return -EINVAL;
	if (index >= info->select.count)
		return wf_last_set(-EINVAL, "there is no entry %zu", index);
	c = &info->select.all[index];
	f = (struct weft_fabric){
		.size = fabric->size,
		.provider = c->caps.provider,
		.domain = c->caps.domain,
		.shape = c->caps.connected ? "connected" : "shared",
		.wait = waits[c->caps.wait],
		.row = c->row->label,
		.reason = c->reason,
		.used = c->used,
		.tested = c->caps.tested,
		.rank = c->row->rank,
		.frame_bytes = c->caps.frame_bytes,
		.inject_bytes = c->caps.inject_bytes,
		.chunk_bytes = c->caps.chunk_bytes,
		.depth = c->caps.depth,
		.registration_is_cheap = c->caps.memory.reg_cheap,
		.hmem = c->caps.memory.device,
		.tested_over = c->row->tested_over ? c->row->tested_over : "",
		.cached = c->caps.memory.reg_cheap ? "" : info->cached,
		.eager_bytes = c->caps.eager_bytes,
	};
	memcpy(fabric, &f, WF_MIN(fabric->size, sizeof(f)));
	return 0;
}

const char *weft_info_libfabric(void)
{
	return wf_select_libfabric_text();
}

/* Read what a node would prove itself by, and say what that is. */
static void see_security(struct weft_info *info)
{
	static const char *const words[][2] = {
		{ "open", "nothing is proved or encrypted" },
		{ "keyed", "all is encrypted but the bodies of long tensors" },
		{ "sealed", "all is encrypted that leaves the host" },
	};
	const struct wf_options *o = &info->options;
	struct wf_proof proof = { 0 };

	info->mode[0] = info->identity[0] = '\0';
	if (wf_proof_open(&proof, o)) {
		snprintf(info->security, sizeof(info->security), "%s", weft_error());
		return;
	}
	snprintf(info->mode, sizeof(info->mode), "%s", wf_options_security(o));
	if (proof.credentials)
		snprintf(info->identity, sizeof(info->identity), "%s",
			 wf_credentials_identity(proof.credentials));
	for (size_t i = 0; i < WF_COUNT(words); i++)
		if (!strcmp(info->mode, words[i][0]))
			snprintf(info->security, sizeof(info->security), "%s%s", words[i][1],
				 proof.acl ? "; peers may do what WEFT_ALLOW says" :
				 o->security[0] || proof.credentials ? "" :
				 "; on loopback, and with this user's nodes alone");
	wf_proof_close(&proof);
}

int weft_info_security(struct weft_info *info, struct weft_info_secure *secure)
{
	struct weft_info_secure s;

	if (WF_NEED(info) || WF_NEED_SIZED(secure))
		return -EINVAL;
	see_security(info);
	s = (struct weft_info_secure){
		.size = secure->size,
		.mode = info->mode,
		.identity = info->identity,
		.sentence = info->security,
	};
	memcpy(secure, &s, WF_MIN(secure->size, sizeof(s)));
	return 0;
}

int weft_info_cuda(struct weft_info *info, struct weft_cuda *cuda)
{
	enum wf_cuda_driver_state state;
	struct weft_cuda c;

	if (WF_NEED(info) || WF_NEED_SIZED(cuda))
		return -EINVAL;
	state = wf_cuda_driver_load(info->options.cuda, &info->cuda);
	(void)wf_cudart_look(NULL, info->cudart);
	c = (struct weft_cuda){
		.size = cuda->size,
		.state = wf_cuda_driver_word(state),
		.sentence = info->cuda.text,
		.version = state == WF_CUDA_OFF ? 0 : wf_cuda_driver_version(),
		.device_count = state == WF_CUDA_READY ? (size_t)wf_cuda_driver_device_count() : 0,
		.fabric = info->cudart,
	};
	memcpy(cuda, &c, WF_MIN(cuda->size, sizeof(c)));
	return 0;
}

int weft_info_cuda_device(const struct weft_info *info, size_t index,
			  struct weft_cuda_device *device)
{
	struct weft_cuda_device d = { 0 };
	struct wf_cuda_device found;
	struct wf_error e;

	if (WF_NEED(info) || WF_NEED_SIZED(device))
		return -EINVAL;
	d.size = device->size;
	if (index >= WF_CUDA_DEVICES_MAX)
		return wf_last_set(-EINVAL, "there is no CUDA device %zu", index);
	if (wf_cuda_device((int)index, &found, &e)) {
		wf_last_copy(&e);
		return e.code;
	}
	_Static_assert(sizeof(d.name) == sizeof(found.name) && sizeof(d.pci) == sizeof(found.pci),
		       "one copies the other");
	memcpy(d.name, found.name, sizeof(d.name));
	memcpy(d.pci, found.pci, sizeof(d.pci));
	d.bytes = found.bytes;
	d.numa_node = found.numa_node;
	d.dma_buf = found.gives_dma_buf;
	memcpy(device, &d, WF_MIN(device->size, sizeof(d)));
	return 0;
}

int weft_info_plan(const struct weft_info *info, size_t index, uint64_t bytes,
		   enum weft_place source, enum weft_place destination, char *text,
		   size_t text_bytes)
{
	const struct wf_rail_caps *caps;
	struct wf_plan plan;
	bool registers;

	if (WF_NEED(info) || WF_NEED(text))
		return -EINVAL;
	if (index >= info->select.count)
		return wf_last_set(-EINVAL, "there is no entry %zu", index);
	caps = &info->select.all[index].caps;
	wf_plan_make(caps, &info->options, bytes, true, WF_LINK_RECORD_BYTES_MAX, &plan);
	/* Keys per offer, and a user's own memory, need a registration; pool memory has one. */
	registers = plan.way == WF_BODY_PULL &&
		    (caps->memory.reg_cheap || source == WEFT_PLACE_USER ||
		     (caps->memory.local && destination == WEFT_PLACE_USER));
	if (plan.way == WF_BODY_PULL)
		snprintf(text, text_bytes,
			 "pull, chunks of %llu bytes, %u in flight%s, %u copies, %s: %s",
			 (unsigned long long)plan.chunk_bytes, plan.depth,
			 plan.helper ? " and a helper's" : "", plan.copies,
			 registers ? "registers memory" : "memory is registered", plan.why);
	else
		snprintf(text, text_bytes, "%s, %u frames, %u copies: %s", wf_plan_way(plan.way),
			 plan.frames, plan.copies, plan.why);
	return 0;
}

size_t weft_option_count(void)
{
	size_t count;

	(void)wf_options_rows(&count);
	return count;
}

int weft_option_get(size_t index, struct weft_option *option)
{
	struct weft_option is;
	size_t count;
	const struct weft_option *rows = wf_options_rows(&count);

	if (WF_NEED_SIZED(option))
		return -EINVAL;
	if (index >= count)
		return wf_last_set(-EINVAL, "there is no setting %zu", index);
	is = rows[index];
	is.size = option->size;
	memcpy(option, &is, WF_MIN(option->size, sizeof(is)));
	return 0;
}
