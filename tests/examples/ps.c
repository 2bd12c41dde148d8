/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A parameter server and its workers, as TensorFlow's users know them: several
 * processes train one model on images of digits.
 *
 *   H="--ps_hosts=127.0.0.1:2220 --worker_hosts=127.0.0.1:2221,127.0.0.1:2222"
 *   ps $H --job_name=ps --task_index=0 &
 *   ps $H --job_name=worker --task_index=1 &
 *   ps $H --job_name=worker --task_index=0
 *
 * Over which fabric is not asked here: FI_PROVIDER and WEFT_PROVIDER say.
 * Any order of starting will do.
 */
#include "ps.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "bell.h"

static const char usage[] =
	"usage: ps --ps_hosts=LIST --worker_hosts=LIST --job_name=ps|worker\n"
	"          --task_index=N [options]\n"
	"       TF_CONFIG=JSON ps [options]\n"
	"       ps --alone=WORKERS [options]\n"
	"Train a perceptron on images of digits; LIST is host:port,host:port...\n"
	"  --sync       steps in common: the sum of all gradients (default)\n"
	"  --async      each worker at its own pace\n"
	"  --steps=N    of each worker [300]\n"
	"  --batch=N    images that a worker takes in a step [64]\n"
	"  --rate=X     of learning [0.2]\n"
	"  --seed=N     of images, first parameters and batches [1]\n"
	"  --device=cuda:N  what travels lies on that device (this process's alone)\n"
	"  --data=DIR   MNIST's IDX files instead of drawn images\n"
	"  --verify     compare with the same training in one process, bit for bit\n"
	"  --progress=N steps between two lines about it [50]\n"
	"  --timeout=S  longest wait for others, in seconds [60]\n"
	"  --alone=N    train in this process alone, as N workers would\n"
	"Every process needs the same options, but for job, task and device.\n";

int ps_open_node(const struct ps *ps, struct weft_node **node,
		 struct sentence *why)
{
	const struct cluster *c = &ps->cluster;
	const char *address = c->hosts[c->job].address[c->task];
	char name[32];
	struct weft_node_options options = WEFT_NODE_OPTIONS_INIT;
	int err;

	options.listen = address;
	options.advertise = address;
	options.name = name;
	options.timeout_ns = ps->timeout_ns;
	snprintf(name, sizeof(name), "%s %u", cluster_job_name(c->job), c->task);
	err = weft_node_open(&options, node);
	if (err)
		sentence_set(why, err, "cannot open %s: %s", address,
			     weft_error());
	return err;
}

void ps_name(const struct ps *ps, enum cluster_job job, unsigned task,
	     char name[PS_NAME_BYTES])
{
	snprintf(name, PS_NAME_BYTES, "%s %u (%s)", cluster_job_name(job), task,
		 ps->cluster.hosts[job].address[task]);
}

size_t ps_gradient_key(unsigned v, unsigned worker, char key[PS_KEY_BYTES])
{
	return (size_t)snprintf(key, PS_KEY_BYTES, "grad/%s/%u",
				mlp_variables[v].name, worker);
}

int ps_watch(struct weft_node *node, struct weft_peer *peer,
	     struct weft_op_options op, struct weft_op **watch)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;

	options.op = op;
	options.op.timeout_ns = WEFT_FOREVER;
	return weft_recv(node, peer, PS_WATCH_STEP, "watch", 5, NULL, &options,
			 watch);
}

/* A number from @low to @high. */
static int read_number(const char *flag, const char *text, uint64_t low,
		       uint64_t high, uint64_t *number, struct sentence *why)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n < low || n > high)
		return sentence_set(why, -EINVAL,
				    "--%s: '%s' is not a number from %" PRIu64
				    " to %" PRIu64, flag, text, low, high);
	*number = n;
	return 0;
}

static int read_rate(const char *text, float *rate, struct sentence *why)
{
	char *end;
	float r = strtof(text, &end);

	if (end == text || *end || !(r > 0 && r <= 10))
		return sentence_set(why, -EINVAL,
				    "--rate: '%s' is not a number above 0, up "
				    "to 10", text);
	*rate = r;
	return 0;
}

enum {
	PS_HOSTS = 1, WORKER_HOSTS, JOB_NAME, TASK_INDEX, SYNC, ASYNC,
	STEPS, BATCH, RATE, SEED, DEVICE, DATA, VERIFY, PROGRESS, TIMEOUT, ALONE,
	HELP
};
static const struct option options[] = {
	{ "ps_hosts", required_argument, NULL, PS_HOSTS },
	{ "worker_hosts", required_argument, NULL, WORKER_HOSTS },
	{ "job_name", required_argument, NULL, JOB_NAME },
	{ "task_index", required_argument, NULL, TASK_INDEX },
	{ "sync", no_argument, NULL, SYNC },
	{ "async", no_argument, NULL, ASYNC },
	{ "steps", required_argument, NULL, STEPS },
	{ "batch", required_argument, NULL, BATCH },
	{ "rate", required_argument, NULL, RATE },
	{ "seed", required_argument, NULL, SEED },
	{ "device", required_argument, NULL, DEVICE },
	{ "data", required_argument, NULL, DATA },
	{ "verify", no_argument, NULL, VERIFY },
	{ "progress", required_argument, NULL, PROGRESS },
	{ "timeout", required_argument, NULL, TIMEOUT },
	{ "alone", required_argument, NULL, ALONE },
	{ "help", no_argument, NULL, HELP },
	{ 0 },
};

/* What the flags say, before it is known what they mean together. */
struct flags {
	const char *ps_hosts, *worker_hosts, *job_name, *task_index;
	uint64_t alone; /* workers, or 0 */
	bool help;
};

static int read_flags(int argc, char **argv, struct flags *f, struct ps *ps,
		      struct sentence *why)
{
	struct train *t = &ps->train;
	uint64_t batch = 64, seconds = 60;
	int option, index, err = 0;

	*t = (struct train){ .sync = true, .steps = 300, .seed = 1, .rate = .2f };
	ps->progress = 50;
	ps->device = -1;
	opterr = 0; /* one error is one line, and ours */
	while (!err &&
	       (option = getopt_long(argc, argv, "", options, &index)) != -1) {
		switch (option) {
		case PS_HOSTS: f->ps_hosts = optarg; break;
		case WORKER_HOSTS: f->worker_hosts = optarg; break;
		case JOB_NAME: f->job_name = optarg; break;
		case TASK_INDEX: f->task_index = optarg; break;
		case SYNC: t->sync = true; break;
		case ASYNC: t->sync = false; break;
		case DATA: ps->data = optarg; break;
		case VERIFY: ps->verify = true; break;
		case HELP: f->help = true; break;
		case DEVICE: err = model_device(optarg, &ps->device, why); break;
		case RATE: err = read_rate(optarg, &t->rate, why); break;
		case STEPS:
			err = read_number("steps", optarg, 1, TRAIN_STEPS_MAX,
					  &t->steps, why);
			break;
		case BATCH:
			err = read_number("batch", optarg, 1, TRAIN_BATCH_MAX,
					  &batch, why);
			break;
		case SEED:
			err = read_number("seed", optarg, 0, UINT64_MAX, &t->seed,
					  why);
			break;
		case PROGRESS:
			err = read_number("progress", optarg, 1, UINT64_MAX,
					  &ps->progress, why);
			break;
		case TIMEOUT:
			err = read_number("timeout", optarg, 1, 86400, &seconds,
					  why);
			break;
		case ALONE:
			err = read_number("alone", optarg, 1, CLUSTER_HOSTS_MAX,
					  &f->alone, why);
			break;
		default:
			err = sentence_set(why, -EINVAL,
					   "'%s' is no flag, or lacks a value: "
					   "see ps --help", argv[optind - 1]);
		}
	}
	if (!err && optind < argc)
		err = sentence_set(why, -EINVAL, "'%s' is not a flag",
				   argv[optind]);
	t->batch = (uint32_t)batch;
	ps->timeout_ns = seconds * 1000000000;
	return err;
}

/* Who takes part: flags if there are any, else TF_CONFIG. */
static int read_cluster(const struct flags *f, struct ps *ps,
			struct sentence *why)
{
	const char *json = getenv("TF_CONFIG");
	struct cluster *c = &ps->cluster;
	int err;

	if (f->ps_hosts || f->worker_hosts || f->job_name || f->task_index)
		err = cluster_from_flags(f->ps_hosts, f->worker_hosts,
					 f->job_name, f->task_index, c, why);
	else if (json)
		err = cluster_from_json(json, c, why);
	else
		err = sentence_set(why, -EINVAL,
				   "neither flags nor TF_CONFIG: see ps --help");
	if (err)
		return err;

	if (c->hosts[CLUSTER_PS].count > MLP_VARIABLES)
		return sentence_set(why, -EINVAL,
				    "%u servers for %d variables: some would "
				    "have none", c->hosts[CLUSTER_PS].count,
				    MLP_VARIABLES);
	if (ps->verify && !ps->train.sync)
		return sentence_set(why, -EINVAL,
				    "--verify needs --sync: the order of "
				    "asynchronous steps is left to chance");
	if (ps->device >= 0 && !ps->train.sync && c->job == CLUSTER_PS)
		return sentence_set(why, -EINVAL,
				    "--device of a server needs --sync: what it "
				    "sends has to stay as it is until it has left");
	ps->train.workers = c->hosts[CLUSTER_WORKER].count;
	/* What two processes must agree on, or they would train apart. */
	snprintf(ps->settings, sizeof(ps->settings),
		 "--%s --steps=%" PRIu64 " --batch=%u --rate=%g --seed=%" PRIu64
		 " with %u servers and %u workers",
		 ps->train.sync ? "sync" : "async", ps->train.steps,
		 ps->train.batch, (double)ps->train.rate, ps->train.seed,
		 c->hosts[CLUSTER_PS].count, ps->train.workers);
	return 0;
}

static int run_alone(const struct ps *ps, struct sentence *why)
{
	struct images learn, test;
	struct mlp *m = malloc(sizeof(*m));
	uint64_t started_ns;
	int err = -ENOMEM;

	if (!m)
		return sentence_set(why, err, "no memory for the model");
	err = train_images(&ps->train, ps->data, &learn, &test, why);
	if (err)
		goto free_model;
	started_ns = bell_now();
	err = train_alone(&ps->train, &learn, m);
	if (err)
		sentence_set(why, err, "no memory for gradients");
	else
		printf("alone: steps_per_s=%.1f accuracy=%.4f\n",
		       (double)ps->train.steps * 1e9 /
			       (double)(bell_now() - started_ns),
		       mlp_accuracy(m, &test));
	images_fini(&learn);
	images_fini(&test);

free_model:
	free(m);
	return err;
}

int main(int argc, char **argv)
{
	struct sentence why = { 0 };
	struct flags flags = { 0 };
	static struct ps ps; /* static: the lists of hosts are large */
	int err = read_flags(argc, argv, &flags, &ps, &why);

	/* Others read our lines as they come. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!err && flags.help) {
		fputs(usage, stdout);
		return 0;
	}
	if (!err && flags.alone) {
		ps.train.workers = (unsigned)flags.alone;
		err = run_alone(&ps, &why);
	} else if (!err) {
		err = read_cluster(&flags, &ps, &why);
		if (!err && ps.cluster.job == CLUSTER_PS)
			err = server_run(&ps, &why);
		else if (!err)
			err = worker_run(&ps, &why);
	}
	if (err && flags.job_name)
		fprintf(stderr, "ps: %s %s: %s\n", flags.job_name,
			flags.task_index ? flags.task_index : "?", why.text);
	else if (err)
		fprintf(stderr, "ps: %s\n", why.text);
	return err ? 1 : 0;
}
