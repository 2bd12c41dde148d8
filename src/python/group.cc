/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Groups and their collectives, as Python has them.
 */
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "errors.h"
#include "node.h"
#include "part.h"

using namespace nb::literals;
using Text = std::optional<std::string>;

class Group : public Part {
public:
	Group(std::shared_ptr<Shared> shared, weft_group *group) : Part(std::move(shared)), group_(group)
	{
		enter();
	}
	~Group() override { close(); }

	weft_group *get() const { return need(group_, "the group is closed"); }

private:
	void end() override;

	weft_group *group_;
};

void Group::end()
{
	if (!shared_->reachable())
		return;
	OwnTurn turn(*shared_);
	nb::gil_scoped_release free;
	weft_group_close(group_);
}

/* Whether a join is to be given up: Ctrl-C has raised an exception, or the node is about to close. */
static int is_given_up(void *arg)
{
	auto *shared = static_cast<Shared *>(arg);
	nb::gil_scoped_acquire gil;

	return PyErr_CheckSignals() || !Inside::may_be(*shared);
}

static Group *join(const Node &n, const Text &bootstrap, const Text &name, nb::handle timeout)
{
	weft_join_options o = WEFT_JOIN_OPTIONS_INIT;
	weft_node *node = n.shared->node();
	weft_group *group;
	int err;

	o.bootstrap = bootstrap ? bootstrap->c_str() : nullptr;
	o.name = name ? name->c_str() : nullptr;
	o.timeout_ns = nanoseconds(timeout, 0);
	o.give_up = is_given_up;
	o.arg = n.shared.get();
	{
		Inside inside(n.shared);

		err = weft_join(node, &o, &group);
	}
	if (PyErr_Occurred())
		throw nb::python_error();
	check(err);
	return new Group(n.shared, group);
}

static Group *open_group(const Node &n, uint32_t rank, nb::list addresses, uint64_t number)
{
	std::vector<std::string> texts;
	std::vector<const char *> list;
	weft_group *group;

	for (nb::handle address : addresses)
		texts.push_back(nb::cast<std::string>(address));
	for (const std::string &text : texts)
		list.push_back(text.c_str());
	check(weft_group_open(n.shared->node(), rank, uint32_t(list.size()), list.data(), number, &group));
	return new Group(n.shared, group);
}

static Peer peer(const Group &g, uint32_t rank)
{
	weft_peer *peer;

	check(weft_group_peer(g.get(), rank, &peer));
	return Peer(g.shared(), peer, false);
}

static weft_reduction reduction_of(const std::string &word)
{
	static const char *const words[] = { "sum", "average", "product", "min", "max", "band", "bor", "bxor" };

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (word == words[i])
			return weft_reduction(i);
	invalid("a reduction is \"sum\", \"average\", \"product\", \"min\", \"max\", \"band\", \"bor\" or \"bxor\"");
}

/* A collective that is about to begin: what goes in, and where the result goes. */
struct Collective {
	Collective(const Group &g, nb::handle in, nb::handle out, nb::handle timeout)
		: flight(std::make_unique<Flight>(g.shared()))
	{
		bool in_place = !in.is_none() && in.ptr() == out.ptr();

		if (!out.is_none())
			flight->second.take(out, true);
		if (!in.is_none() && !in_place)
			flight->array.take(in, false);
		this->in = in_place ? flight->second.pointer() : flight->array.pointer();
		this->out = flight->second.pointer();
		flight->given = nb::borrow(out);
		flight->result = [](Flight &f) { return f.given; };
		fill(options, *flight, timeout);
		group = g.get(); // arrays may have run other threads
	}

	Operation begun(int err)
	{
		check(err);
		return Operation(std::move(flight));
	}

	std::unique_ptr<Flight> flight;
	weft_group *group = nullptr;
	const weft_tensor *in, *out;
	weft_op_options options = WEFT_OP_OPTIONS_INIT;
};

static nb::handle or_in(nb::handle out, nb::handle in)
{
	return out.is_none() ? in : out;
}

static Operation all_reduce(const Group &g, nb::handle in, nb::handle out, const std::string &op,
			    nb::handle timeout)
{
	Collective c(g, in, or_in(out, in), timeout);

	return c.begun(weft_all_reduce(c.group, c.in, c.out, reduction_of(op), &c.options, &c.flight->op));
}

static Operation reduce(const Group &g, uint32_t root, nb::handle in, nb::handle out, const std::string &op,
			nb::handle timeout)
{
	bool here = weft_group_rank(g.get()) == root;
	Collective c(g, in, here ? or_in(out, in) : nb::none(), timeout);

	return c.begun(weft_reduce(c.group, root, c.in, c.out, reduction_of(op), &c.options, &c.flight->op));
}

static Operation reduce_scatter(const Group &g, nb::handle in, nb::handle out, const std::string &op,
				nb::handle timeout)
{
	Collective c(g, in, out, timeout);

	return c.begun(
		weft_reduce_scatter(c.group, c.in, c.out, reduction_of(op), &c.options, &c.flight->op));
}

static Operation all_gather(const Group &g, nb::handle in, nb::handle out, nb::handle timeout)
{
	Collective c(g, in, out, timeout);

	return c.begun(weft_all_gather(c.group, c.in, c.out, &c.options, &c.flight->op));
}

static Operation gather(const Group &g, uint32_t root, nb::handle in, nb::handle out, nb::handle timeout)
{
	Collective c(g, in, out, timeout);

	return c.begun(weft_gather(c.group, root, c.in, c.out, &c.options, &c.flight->op));
}

static Operation scatter(const Group &g, uint32_t root, nb::handle in, nb::handle out, nb::handle timeout)
{
	Collective c(g, in, out, timeout);

	return c.begun(weft_scatter(c.group, root, c.in, c.out, &c.options, &c.flight->op));
}

static Operation all_to_all(const Group &g, nb::handle in, nb::handle out, nb::handle timeout)
{
	Collective c(g, in, out, timeout);

	return c.begun(weft_all_to_all(c.group, c.in, c.out, &c.options, &c.flight->op));
}

static Operation broadcast(const Group &g, uint32_t root, nb::handle tensor, nb::handle timeout)
{
	bool here = weft_group_rank(g.get()) == root;
	Collective c(g, here ? tensor : nb::none(), here ? nb::none() : tensor, timeout);

	c.flight->given = nb::borrow(tensor);
	return c.begun(weft_group_broadcast(c.group, root, here ? c.in : c.out, &c.options, &c.flight->op));
}

static Operation barrier(const Group &g, nb::handle timeout)
{
	Collective c(g, nb::none(), nb::none(), timeout);

	return c.begun(weft_barrier(c.group, &c.options, &c.flight->op));
}

static void bind_collectives(nb::class_<Group> &c)
{
	c.def("all_reduce", &all_reduce, "tensor"_a, "out"_a = nb::none(), nb::kw_only(), "op"_a = "sum",
	      "timeout"_a = nb::none(),
	      "Combine the arrays of all, element by element, into out of each; None: into tensor.\n\n"
	      "op: sum, average, product, min, max, band, bor, bxor.  Every process begins the same\n"
	      "collectives in the same order.  result() is out.")
		.def("reduce", &reduce, "root"_a, "tensor"_a, "out"_a = nb::none(), nb::kw_only(), "op"_a = "sum",
		     "timeout"_a = nb::none(), "Combine as all_reduce() does, into out of root alone.")
		.def("reduce_scatter", &reduce_scatter, "tensor"_a, "out"_a, nb::kw_only(), "op"_a = "sum",
		     "timeout"_a = nb::none(), "Combine, and give each process the part of its rank in out.")
		.def("all_gather", &all_gather, "tensor"_a, "out"_a, nb::kw_only(), "timeout"_a = nb::none(),
		     "Collect the arrays of all, by rank, in out of each.")
		.def("gather", &gather, "root"_a, "tensor"_a, "out"_a = nb::none(), nb::kw_only(),
		     "timeout"_a = nb::none(), "Collect the arrays of all in out of root.")
		.def("scatter", &scatter, "root"_a, "tensor"_a.none(), "out"_a, nb::kw_only(),
		     "timeout"_a = nb::none(), "Give each process the part of its rank of root's tensor.")
		.def("all_to_all", &all_to_all, "tensor"_a, "out"_a, nb::kw_only(), "timeout"_a = nb::none(),
		     "Give each process its part of the tensor of every process.")
		.def("broadcast", &broadcast, "root"_a, "tensor"_a, nb::kw_only(), "timeout"_a = nb::none(),
		     "Give all the tensor of root.")
		.def("barrier", &barrier, nb::kw_only(), "timeout"_a = nb::none(),
		     "End when all have begun it.");
}

void bind_group(nb::module_ &m, nb::class_<Node> &node)
{
	nb::class_<Group> c(m, "Group", "The processes of a job, by rank, and their collectives.");

	c.def_prop_ro("rank", [](const Group &g) { return weft_group_rank(g.get()); })
		.def_prop_ro("size", [](const Group &g) { return weft_group_size(g.get()); })
		.def_prop_ro("local_rank", [](const Group &g) { return weft_group_local_rank(g.get()); },
			     "This process among those of its host.")
		.def_prop_ro("local_size", [](const Group &g) { return weft_group_local_size(g.get()); })
		.def_prop_ro("launcher", [](const Group &g) { return nb::str(weft_group_launcher(g.get())); })
		.def("address", [](const Group &g, uint32_t rank) {
			const char *address = weft_group_address(g.get(), rank);

			return address ? nb::object(nb::str(address)) : nb::none();
		}, "rank"_a)
		.def("peer", &peer, "rank"_a, "The node of another rank.")
		.def("close", [](Group &g) { g.close(); });
	bind_collectives(c);
	node.def("join", &join, nb::kw_only(), "bootstrap"_a = nb::none(), "name"_a = nb::none(),
		 "timeout"_a = nb::none(),
		 "Join the job of this process, as torchrun, mpirun, srun, Kubernetes or weft run have\n"
		 "started it; see weft_group(3).  Raises weft.Error with the ranks that are missing.")
		.def("group", &open_group, "rank"_a, "addresses"_a, "number"_a,
		     "A group of nodes whose addresses are known, by rank.\n\n"
		     "number: the same in all its processes, not 0, and of no other group of theirs.");
}
