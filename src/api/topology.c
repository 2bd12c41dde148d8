/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/last.h"
#include "core/node.h"
#include "memory/orchestrator.h"

struct weft_topology {
	struct wf_orchestrator orchestrator;
	const struct wf_topology_device **clients;
	size_t client_count;
	/* Choices among the publishers, in their order: a row for each client. */
	struct wf_orchestrator_choice *choices;
	bool *chosen;
};

/*
 * Judge each publisher for @client alone and one page.  Device memory is judged as if the client
 * asked for it, but is never chosen.
 */
static int judge(struct weft_topology *t, size_t client)
{
	size_t count = t->orchestrator.publishers.count;
	struct wf_orchestrator_choice *sorted = calloc(count, sizeof(*sorted));
	const struct wf_topology_device *device = t->clients[client];
	struct wf_orchestrator_request request = {
		.clients = { { device, device->node } }, .client_count = 1, .bytes = 1,
		.device = true,
	};
	bool found = false;

	if (!sorted)
		return -ENOMEM;
	wf_orchestrator_judge(&t->orchestrator, &request, sorted);
	for (size_t i = 0; i < count; i++) {
		size_t at = client * count +
			    (size_t)(sorted[i].publisher - t->orchestrator.publishers.all);

		t->choices[at] = sorted[i];
		t->chosen[at] = !found && !sorted[i].err &&
				sorted[i].publisher->how->rights & WF_PUBLISHER_CPU;
		found |= t->chosen[at];
	}
	free(sorted);
	return 0;
}

static int find_clients(struct weft_topology *t)
{
	const struct wf_topology *of = &t->orchestrator.topology;
	size_t count = t->orchestrator.publishers.count;
	int err = 0;

	t->clients = calloc(of->device_count + 1, sizeof(t->clients[0]));
	t->choices = calloc((of->device_count + 1) * count, sizeof(t->choices[0]));
	t->chosen = calloc((of->device_count + 1) * count, sizeof(t->chosen[0]));
	if (!t->clients || !t->choices || !t->chosen)
		return -ENOMEM;
	/* Publishers that may serve no client are looked at, too. */
	for (size_t i = 0; i < count; i++)
		wf_publisher_look(&t->orchestrator.publishers.all[i]);
	for (size_t i = 0; i < of->device_count && !err; i++) {
		if (of->devices[i].kind == WF_DEVICE_OTHER)
			continue;
		t->clients[t->client_count] = &of->devices[i];
		err = judge(t, t->client_count++);
	}
	return err;
}

int weft_topology_open(const struct weft_node_options *options, struct weft_topology **topology)
{
	struct weft_node_options given;
	struct weft_topology *fresh;
	struct wf_options o;
	struct wf_error e;
	int err;

	err = WF_NEED(topology);
	if (!err)
		err = wf_check_options(options, &given, sizeof(given));
	if (!err)
		err = wf_node_settings(&given, &o);
	if (err)
		return err;
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return wf_last_set(-ENOMEM, "no memory for a topology");
	err = wf_orchestrator_open(&fresh->orchestrator, o.sysfs, o.rules, o.cuda, &e);
	if (err) {
		free(fresh);
		return wf_last_copy(&e);
	}
	err = find_clients(fresh);
	if (err) {
		weft_topology_close(fresh);
		return wf_last_set(err, "no memory for a topology");
	}
	*topology = fresh;
	return 0;
}

void weft_topology_close(struct weft_topology *topology)
{
	if (!topology)
		return;
	free(topology->chosen);
	free(topology->choices);
	free(topology->clients);
	wf_orchestrator_close(&topology->orchestrator);
	free(topology);
}

size_t weft_topology_publishers(const struct weft_topology *topology)
{
	return WF_NEED(topology) ? 0 : topology->orchestrator.publishers.count;
}

size_t weft_topology_clients(const struct weft_topology *topology)
{
	return WF_NEED(topology) ? 0 : topology->client_count;
}

int weft_topology_publisher(const struct weft_topology *topology, size_t index,
			    struct weft_publisher *publisher)
{
	struct weft_publisher is;
	const struct wf_publisher *p;

	if (WF_NEED(topology) || WF_NEED_SIZED(publisher))
		return -EINVAL;
	if (index >= weft_topology_publishers(topology))
		return wf_last_set(-EINVAL, "there is no publisher %zu", index);
	p = &topology->orchestrator.publishers.all[index];
	is = (struct weft_publisher){
		.size = publisher->size,
		.name = p->name,
		.kind = p->how->kind,
		.address = p->place.device ? p->place.device->address : "",
		.numa_node = p->place.node,
		.published = p->published,
		.lends = (p->how->rights & WF_PUBLISHER_LENDS) != 0,
		.bytes = p->bytes,
		.available_bytes = p->available_bytes,
		.why_not = p->why_not,
	};
	memcpy(publisher, &is, WF_MIN(publisher->size, sizeof(is)));
	return 0;
}

int weft_topology_client(const struct weft_topology *topology, size_t index,
			 struct weft_client *client)
{
	static const char *const kinds[] = { "", "nic", "gpu", "nvme" };
	const struct wf_topology_device *d;
	struct weft_client is;

	if (WF_NEED(topology) || WF_NEED_SIZED(client))
		return -EINVAL;
	if (index >= topology->client_count)
		return wf_last_set(-EINVAL, "there is no client %zu", index);
	d = topology->clients[index];
	is = (struct weft_client){
		.size = client->size,
		.name = d->name,
		.names = d->names,
		.address = d->address,
		.kind = kinds[d->kind],
		.numa_node = d->node,
	};
	memcpy(client, &is, WF_MIN(client->size, sizeof(is)));
	return 0;
}

int weft_topology_pair(const struct weft_topology *topology, size_t publisher, size_t client,
		       struct weft_pair *pair)
{
	const struct wf_orchestrator_choice *c;
	struct weft_pair is;
	size_t at;

	if (WF_NEED(topology) || WF_NEED_SIZED(pair))
		return -EINVAL;
	if (publisher >= weft_topology_publishers(topology) || client >= topology->client_count)
		return wf_last_set(-EINVAL, "there is no publisher %zu or no client %zu", publisher,
				   client);
	at = client * weft_topology_publishers(topology) + publisher;
	c = &topology->choices[at];
	is = (struct weft_pair){
		.size = pair->size,
		.path = wf_topology_classes[c->near],
		.distance = c->distance,
		.allowed = c->err != -EACCES,
		.chosen = topology->chosen[at],
	};
	snprintf(is.why, sizeof(is.why), "%s", c->why);
	memcpy(pair, &is, WF_MIN(pair->size, sizeof(is)));
	return 0;
}
