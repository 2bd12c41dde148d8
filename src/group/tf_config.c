/* SPDX-License-Identifier: BSD-2-Clause */
#include "group/tf_config.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "group/launcher.h"
#include "util/environment.h"

/* Jobs whose tasks come first, in this order; TensorFlow's own order of devices is the alphabet's. */
static const char *const first_jobs[] = { "chief", "master", "worker", "ps" };

/* The tasks counted so far, and this process among them. */
struct count {
	const char *type; /* job of this process, and the index in it */
	double index;
	uint32_t size;
	bool found;
	uint32_t rank;
	const char *root; /* address of the first task */
};

static int count_tasks(struct count *c, const cJSON *tasks, struct wf_error *e)
{
	const cJSON *task;
	double index = 0;

	if (!cJSON_IsArray(tasks))
		return wf_error_set(e, -EINVAL, "TF_CONFIG: \"%.50s\" is not a list", tasks->string);
	cJSON_ArrayForEach (task, tasks) {
		if (!cJSON_IsString(task) || c->size == WF_JOB_SIZE_MAX)
			return wf_error_set(e, -EINVAL, "TF_CONFIG: \"%.50s\" has an entry that is no "
							"address, or too many", tasks->string);
		if (!c->size)
			c->root = task->valuestring;
		if (!strcmp(tasks->string, c->type) && index == c->index) {
			c->found = true;
			c->rank = c->size;
		}
		c->size++;
		index++;
	}
	return 0;
}

static bool is_first(const char *name)
{
	for (size_t i = 0; i < WF_COUNT(first_jobs); i++)
		if (!strcmp(first_jobs[i], name))
			return true;
	return false;
}

static int count_cluster(struct count *c, const cJSON *cluster, struct wf_error *e)
{
	const cJSON *tasks;
	int err = 0;

	for (size_t i = 0; i < WF_COUNT(first_jobs) && !err; i++) {
		tasks = cJSON_GetObjectItemCaseSensitive(cluster, first_jobs[i]);
		if (tasks)
			err = count_tasks(c, tasks, e);
	}
	cJSON_ArrayForEach (tasks, cluster) {
		if (!err && !is_first(tasks->string))
			err = count_tasks(c, tasks, e);
	}
	return err;
}

static int read_json(const cJSON *root, struct wf_job *job, struct wf_error *e)
{
	const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(root, "cluster");
	const cJSON *task = cJSON_GetObjectItemCaseSensitive(root, "task");
	const cJSON *type = cJSON_GetObjectItemCaseSensitive(task, "type");
	const cJSON *index = cJSON_GetObjectItemCaseSensitive(task, "index");
	struct count c = { 0 };
	uint16_t port;
	int err;

	if (!cJSON_IsObject(cluster) || !cJSON_IsString(type) || !cJSON_IsNumber(index))
		return wf_error_set(e, -EINVAL,
				    "TF_CONFIG lacks \"cluster\", or \"type\" or \"index\" of \"task\"");
	c.type = type->valuestring;
	c.index = index->valuedouble;
	err = count_cluster(&c, cluster, e);
	if (!err && !c.found)
		err = wf_error_set(e, -EINVAL, "TF_CONFIG: no task %.50s %g is in the cluster", c.type,
				   c.index);
	if (!err)
		err = wf_socket_split(c.root, job->host, sizeof(job->host), &port, e);
	if (err)
		return err;
	if (!port)
		return wf_error_set(e, -EINVAL, "TF_CONFIG: \"%.100s\" has no port", c.root);
	job->rank = c.rank;
	job->size = c.size;
	/* The port itself, and often those after it, belong to TensorFlow's servers. */
	return wf_launcher_port("", wf_launcher_port_of(port), job, e);
}

int wf_tf_config_read(const char *text, struct wf_job *job, struct wf_error *e)
{
	cJSON *root = cJSON_Parse(text);
	int err = root ? read_json(root, job, e)
		       : wf_error_set(e, -EINVAL, "TF_CONFIG is not valid JSON");

	cJSON_Delete(root);
	return err;
}

static bool here(void)
{
	return wf_environment_get("TF_CONFIG");
}

static int read_environment(const struct wf_options *options, const char *argument,
			    struct wf_job *job, struct wf_error *e)
{
	const char *text = wf_environment_get("TF_CONFIG");
	int err;

	(void)options;
	if (!text)
		return wf_error_set(e, -ENOENT, "TF_CONFIG is not set");
	err = wf_tf_config_read(text, job, e);
	return err || !*argument ? err : wf_launcher_port(argument, job->port, job, e);
}

const struct wf_launcher wf_tf_config_launcher = {
	.name = "tf_config",
	.here = here,
	.read = read_environment,
};
