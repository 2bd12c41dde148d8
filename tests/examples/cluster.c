/* SPDX-License-Identifier: BSD-2-Clause */
#include "cluster.h"

#include <cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *cluster_job_name(enum cluster_job job)
{
	return job == CLUSTER_PS ? "ps" : "worker";
}

/* Add "host:port", @bytes long. */
static int add_host(struct cluster_hosts *hosts, const char *source,
		    const char *address, size_t bytes, struct sentence *why)
{
	size_t port = bytes; /* where it begins; an IPv6 host has colons too */

	while (port > 0 && address[port - 1] != ':')
		port--;
	if (hosts->count == CLUSTER_HOSTS_MAX)
		return sentence_set(why, -EINVAL, "%s: more than %d hosts", source,
				    CLUSTER_HOSTS_MAX);
	if (bytes >= CLUSTER_HOST_BYTES || port < 2 || port == bytes)
		return sentence_set(why, -EINVAL,
				    "%s: '%.*s' is not host:port", source,
				    bytes < 80 ? (int)bytes : 80, address);

	memcpy(hosts->address[hosts->count], address, bytes);
	hosts->address[hosts->count][bytes] = '\0';
	hosts->count++;
	return 0;
}

/* What both sources must hold to: each host once, and our task among them. */
static int check(const struct cluster *c, const char *source,
		 struct sentence *why)
{
	const struct cluster_hosts *ps = &c->hosts[CLUSTER_PS];
	const struct cluster_hosts *workers = &c->hosts[CLUSTER_WORKER];
	unsigned all = ps->count + workers->count;

	if (ps->count == 0 || workers->count == 0)
		return sentence_set(why, -EINVAL, "%s: no %s named", source,
				    ps->count == 0 ? "ps" : "worker");
	if (c->task >= c->hosts[c->job].count)
		return sentence_set(why, -EINVAL,
				    "%s: there is no %s %u, the last is %u",
				    source, cluster_job_name(c->job), c->task,
				    c->hosts[c->job].count - 1);

	for (unsigned i = 0; i < all; i++) {
		for (unsigned j = 0; j < i; j++) {
			const char *a = i < ps->count ? ps->address[i] :
				workers->address[i - ps->count];
			const char *b = j < ps->count ? ps->address[j] :
				workers->address[j - ps->count];

			if (strcmp(a, b) == 0)
				return sentence_set(why, -EINVAL,
						    "%s: %s is named twice",
						    source, a);
		}
	}
	return 0;
}

static int add_list(struct cluster_hosts *hosts, const char *flag,
		    const char *list, struct sentence *why)
{
	int err;

	while (*list) {
		size_t bytes = strcspn(list, ",");

		err = add_host(hosts, flag, list, bytes, why);
		if (err)
			return err;
		list += bytes;
		if (*list)
			list++;
	}
	return 0;
}

int cluster_from_flags(const char *ps_hosts, const char *worker_hosts,
		       const char *job_name, const char *task_index,
		       struct cluster *cluster, struct sentence *why)
{
	struct cluster c = { 0 };
	unsigned long task;
	char *end;
	int err;

	if (!ps_hosts || !worker_hosts || !job_name || !task_index)
		return sentence_set(why, -EINVAL,
				    "--ps_hosts, --worker_hosts, --job_name and "
				    "--task_index go together");

	if (strcmp(job_name, "ps") == 0)
		c.job = CLUSTER_PS;
	else if (strcmp(job_name, "worker") == 0)
		c.job = CLUSTER_WORKER;
	else
		return sentence_set(why, -EINVAL,
				    "--job_name: '%s' is neither ps nor worker",
				    job_name);

	/* strtoul would take blanks and a minus sign. */
	task = strtoul(task_index, &end, 10);
	if (*task_index < '0' || *task_index > '9' || *end ||
	    task >= CLUSTER_HOSTS_MAX)
		return sentence_set(why, -EINVAL,
				    "--task_index: '%s' is not a number below %d",
				    task_index, CLUSTER_HOSTS_MAX);
	c.task = (unsigned)task;

	err = add_list(&c.hosts[CLUSTER_PS], "--ps_hosts", ps_hosts, why);
	if (!err)
		err = add_list(&c.hosts[CLUSTER_WORKER], "--worker_hosts",
			       worker_hosts, why);
	if (!err)
		err = check(&c, "--ps_hosts and --worker_hosts", why);
	if (err)
		return err;
	*cluster = c;
	return 0;
}

/* The hosts that TF_CONFIG lists under @job; none is no error. */
static int add_array(struct cluster_hosts *hosts, const cJSON *all,
		     const char *job, struct sentence *why)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(all, job), *item;
	int err;

	if (list && !cJSON_IsArray(list))
		return sentence_set(why, -EINVAL,
				    "TF_CONFIG: \"%s\" is not a list", job);
	cJSON_ArrayForEach(item, list) {
		if (!cJSON_IsString(item))
			return sentence_set(why, -EINVAL,
					    "TF_CONFIG: \"%s\" has an entry that "
					    "is not a string", job);
		err = add_host(hosts, "TF_CONFIG", item->valuestring,
			       strlen(item->valuestring), why);
		if (err)
			return err;
	}
	return 0;
}

/* @chiefs: how many there are, before the first worker proper. */
static int read_task(const cJSON *root, unsigned chiefs, struct cluster *c,
		     struct sentence *why)
{
	const cJSON *task = cJSON_GetObjectItemCaseSensitive(root, "task");
	const cJSON *type = cJSON_GetObjectItemCaseSensitive(task, "type");
	const cJSON *index = cJSON_GetObjectItemCaseSensitive(task, "index");
	const char *name = cJSON_GetStringValue(type);
	unsigned number;

	if (!name || !cJSON_IsNumber(index))
		return sentence_set(why, -EINVAL,
				    "TF_CONFIG: \"task\" lacks a \"type\" or a "
				    "numeric \"index\"");
	if (!(index->valuedouble >= 0 &&
	      index->valuedouble < CLUSTER_HOSTS_MAX) ||
	    index->valuedouble != (unsigned)index->valuedouble)
		return sentence_set(why, -EINVAL,
				    "TF_CONFIG: %g is no index of a task",
				    index->valuedouble);
	number = (unsigned)index->valuedouble;

	if (strcmp(name, "ps") == 0) {
		c->job = CLUSTER_PS;
		c->task = number;
	} else if (strcmp(name, "worker") == 0) {
		c->job = CLUSTER_WORKER;
		c->task = chiefs + number;
	} else if (strcmp(name, "chief") == 0 && number < chiefs) {
		c->job = CLUSTER_WORKER;
		c->task = number;
	} else {
		return sentence_set(why, -EINVAL,
				    "TF_CONFIG: there is no task %s %u here",
				    name, number);
	}
	return 0;
}

int cluster_from_json(const char *json, struct cluster *cluster,
		      struct sentence *why)
{
	struct cluster c = { 0 };
	struct cluster_hosts *workers = &c.hosts[CLUSTER_WORKER];
	cJSON *root = cJSON_ParseWithOpts(json, NULL, true);
	const cJSON *all = cJSON_GetObjectItemCaseSensitive(root, "cluster");
	unsigned chiefs;
	int err;

	if (!cJSON_IsObject(all)) {
		err = sentence_set(why, -EINVAL,
				   root ? "TF_CONFIG has no \"cluster\"" :
					  "TF_CONFIG is not valid JSON");
		goto free_root;
	}
	err = add_array(&c.hosts[CLUSTER_PS], all, "ps", why);
	if (!err)
		err = add_array(workers, all, "chief", why);
	chiefs = workers->count;
	if (!err)
		err = add_array(workers, all, "worker", why);
	if (!err)
		err = read_task(root, chiefs, &c, why);
	if (!err)
		err = check(&c, "TF_CONFIG", why);
	if (!err)
		*cluster = c;

free_root:
	cJSON_Delete(root);
	return err;
}
