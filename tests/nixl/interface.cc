/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plug-in's declarations of NIXL's interface, compared with NIXL's own headers: sizes and
 * places of members by the compiler, the order of virtual functions by calls through one
 * declaration of an object of the other.
 *
 * Built by `run --headers DIR`.
 */
#include <cstddef>
#include <cstdio>
#include <memory>

#include "backend/backend_plugin.h"

#include "../../src/nixl/backend.h"

namespace {

#define SAME_SIZE(ours, theirs) \
	static_assert(sizeof(weft_nixl::ours) == sizeof(theirs), #ours " has another size")
#define SAME_PLACE(ours, member, theirs, other) \
	static_assert(offsetof(weft_nixl::ours, member) == offsetof(theirs, other), \
		      #ours "::" #member " is elsewhere")
#define SAME_NUMBER(ours, theirs) \
	static_assert(static_cast<int>(weft_nixl::ours) == static_cast<int>(theirs), \
		      #ours " has another number")

SAME_SIZE(Memory, nixl_mem_t);
SAME_SIZE(Direction, nixl_xfer_op_t);
SAME_SIZE(Status, nixl_status_t);
SAME_SIZE(Locking, nixl_thread_sync_t);
SAME_SIZE(CostMethod, nixl_cost_t);
SAME_SIZE(Metadata, nixlBackendMD);
SAME_SIZE(Handle, nixlBackendReqH);
SAME_SIZE(Span, nixlBasicDesc);
SAME_SIZE(Registrable, nixlBlobDesc);
SAME_SIZE(Located, nixlMetaDesc);
SAME_SIZE(RemotelyLocated, nixlRemoteMetaDesc);
SAME_SIZE(List<weft_nixl::Located>, nixl_meta_dlist_t);
SAME_SIZE(TransferOptions, nixl_opt_b_args_t);
SAME_SIZE(BackendOptions, nixlBackendInitParams);
SAME_SIZE(TelemetryEvent, nixlTelemetryEvent);
SAME_SIZE(Backend, nixlBackendEngine);
SAME_SIZE(Plugin, nixlBackendPlugin);

SAME_PLACE(Span, address, nixlBasicDesc, addr);
SAME_PLACE(Span, bytes, nixlBasicDesc, len);
SAME_PLACE(Span, device, nixlBasicDesc, devId);
SAME_PLACE(Registrable, text, nixlBlobDesc, metaInfo);
SAME_PLACE(Located, metadata, nixlMetaDesc, metadataP);
SAME_PLACE(TransferOptions, notification, nixl_opt_b_args_t, notifMsg);
SAME_PLACE(TransferOptions, has_notification, nixl_opt_b_args_t, hasNotif);
SAME_PLACE(TransferOptions, custom, nixl_opt_b_args_t, customParam);
SAME_PLACE(BackendOptions, agent, nixlBackendInitParams, localAgent);
SAME_PLACE(BackendOptions, type, nixlBackendInitParams, type);
SAME_PLACE(BackendOptions, parameters, nixlBackendInitParams, customParams);
SAME_PLACE(BackendOptions, progress_thread, nixlBackendInitParams, enableProgTh);
SAME_PLACE(BackendOptions, progress_delay_us, nixlBackendInitParams, pthrDelay);
SAME_PLACE(BackendOptions, locking, nixlBackendInitParams, syncMode);
SAME_PLACE(BackendOptions, telemetry, nixlBackendInitParams, enableTelemetry_);
SAME_PLACE(Plugin, interface, nixlBackendPlugin, api_version);
SAME_PLACE(Plugin, open, nixlBackendPlugin, create_engine);
SAME_PLACE(Plugin, close, nixlBackendPlugin, destroy_engine);
SAME_PLACE(Plugin, name, nixlBackendPlugin, get_plugin_name);
SAME_PLACE(Plugin, version, nixlBackendPlugin, get_plugin_version);
SAME_PLACE(Plugin, parameters, nixlBackendPlugin, get_backend_options);
SAME_PLACE(Plugin, memories, nixlBackendPlugin, get_backend_mems);

SAME_NUMBER(DRAM, DRAM_SEG);
SAME_NUMBER(VRAM, VRAM_SEG);
SAME_NUMBER(FILES, FILE_SEG);
SAME_NUMBER(READ, NIXL_READ);
SAME_NUMBER(WRITE, NIXL_WRITE);
SAME_NUMBER(IN_PROGRESS, NIXL_IN_PROG);
SAME_NUMBER(SUCCESS, NIXL_SUCCESS);
SAME_NUMBER(NOT_POSTED, NIXL_ERR_NOT_POSTED);
SAME_NUMBER(INVALID_PARAMETER, NIXL_ERR_INVALID_PARAM);
SAME_NUMBER(BACKEND_ERROR, NIXL_ERR_BACKEND);
SAME_NUMBER(NOT_FOUND, NIXL_ERR_NOT_FOUND);
SAME_NUMBER(MISMATCH, NIXL_ERR_MISMATCH);
SAME_NUMBER(NOT_ALLOWED, NIXL_ERR_NOT_ALLOWED);
SAME_NUMBER(REPOST_ACTIVE, NIXL_ERR_REPOST_ACTIVE);
SAME_NUMBER(UNKNOWN, NIXL_ERR_UNKNOWN);
SAME_NUMBER(NOT_SUPPORTED, NIXL_ERR_NOT_SUPPORTED);
SAME_NUMBER(REMOTE_DISCONNECT, NIXL_ERR_REMOTE_DISCONNECT);
SAME_NUMBER(CANCELED, NIXL_ERR_CANCELED);
static_assert(weft_nixl::kInterface == NIXL_PLUGIN_API_VERSION, "the interface has changed");

int called; /* number of the function that was called last, in NIXL's order */
int failures;

/* A backend by the plug-in's declarations, each function of which says that it was called. */
class Ours : public weft_nixl::Backend {
public:
	explicit Ours(const weft_nixl::BackendOptions *options) : Backend(options) { failed = true; }
	~Ours() override { called = 1; }

	using Status = weft_nixl::Status;
	using Located = weft_nixl::List<weft_nixl::Located>;
	using Text = std::string;

	static Status is(int number)
	{
		called = number;
		return static_cast<Status>(-number);
	}

	bool is_remote() const override { return is(2), true; }
	bool is_local() const override { return is(3), true; }
	bool has_notifications() const override { return is(4), true; }
	weft_nixl::Memories memories() const override { return is(5), weft_nixl::Memories(); }
	Status register_memory(const weft_nixl::Registrable &, const weft_nixl::Memory &,
			       weft_nixl::Metadata *&) override { return is(6); }
	Status deregister_memory(weft_nixl::Metadata *) override { return is(7); }
	Status connect(const Text &) override { return is(8); }
	Status disconnect(const Text &) override { return is(9); }
	Status unload(weft_nixl::Metadata *) override { return is(10); }
	Status prepare(const weft_nixl::Direction &, const Located &, const Located &, const Text &,
		       weft_nixl::Handle *&, const weft_nixl::TransferOptions *) const override
	{
		return is(11);
	}
	Status post(const weft_nixl::Direction &, const Located &, const Located &, const Text &,
		    weft_nixl::Handle *&, const weft_nixl::TransferOptions *) const override
	{
		return is(12);
	}
	Status check(weft_nixl::Handle *) const override { return is(13); }
	Status release(weft_nixl::Handle *) const override { return is(14); }
	Status prepare_view(const weft_nixl::List<weft_nixl::RemotelyLocated> &, void *&,
			    const weft_nixl::TransferOptions *) const override { return is(15); }
	Status prepare_view(const Located &, void *&,
			    const weft_nixl::TransferOptions *) const override { return is(16); }
	void release_view(void *) const override { is(17); }
	Status describe(const weft_nixl::Metadata *, Text &) const override { return is(18); }
	Status describe_self(Text &) const override { return is(19); }
	Status load_agent(const Text &, const Text &) override { return is(20); }
	Status load_memory(const weft_nixl::Registrable &, const weft_nixl::Memory &, const Text &,
			   weft_nixl::Metadata *&) override { return is(21); }
	Status load_own_memory(weft_nixl::Metadata *, weft_nixl::Metadata *&) override
	{
		return is(22);
	}
	Status take_notifications(weft_nixl::Notifications &) override { return is(23); }
	Status notify(const Text &, const Text &) const override { return is(24); }
	Status query(const weft_nixl::List<weft_nixl::Registrable> &,
		     std::vector<std::optional<weft_nixl::Parameters>> &) const override
	{
		return is(25);
	}
	Status estimate(const weft_nixl::Direction &, const Located &, const Located &, const Text &,
			weft_nixl::Handle *const &, std::chrono::microseconds &,
			std::chrono::microseconds &, weft_nixl::CostMethod &,
			const void *) const override { return is(26); }
};

void expect(int number, const char *name)
{
	if (called != number) {
		printf("%s calls function %d, not %d\n", name, called, number);
		failures++;
	}
	called = 0;
}

#define CALL(number, call) (call, expect(number, #call))

/* Call each function of @engine by NIXL's declaration; references are to memory of their size. */
void call_all(nixlBackendEngine *engine)
{
	alignas(16) static char room[256];
	auto &located = *reinterpret_cast<nixl_meta_dlist_t *>(room);
	auto &remote = *reinterpret_cast<nixl_remote_meta_dlist_t *>(room);
	auto &registrable = *reinterpret_cast<nixlBlobDesc *>(room);
	auto &all = *reinterpret_cast<nixl_reg_dlist_t *>(room);
	std::vector<nixl_query_resp_t> answers;
	std::chrono::microseconds duration, margin;
	nixl_cost_t method = nixl_cost_t::ANALYTICAL_BACKEND;
	nixlBackendReqH *handle = nullptr;
	nixlBackendMD *metadata = nullptr;
	nixlMemViewH view = nullptr;
	notif_list_t notifications;
	std::string text;

	CALL(2, (void)engine->supportsRemote());
	CALL(3, (void)engine->supportsLocal());
	CALL(4, (void)engine->supportsNotif());
	CALL(5, (void)engine->getSupportedMems());
	CALL(6, (void)engine->registerMem(registrable, DRAM_SEG, metadata));
	CALL(7, (void)engine->deregisterMem(metadata));
	CALL(8, (void)engine->connect(text));
	CALL(9, (void)engine->disconnect(text));
	CALL(10, (void)engine->unloadMD(metadata));
	CALL(11, (void)engine->prepXfer(NIXL_READ, located, located, text, handle));
	CALL(12, (void)engine->postXfer(NIXL_READ, located, located, text, handle));
	CALL(13, (void)engine->checkXfer(handle));
	CALL(14, (void)engine->releaseReqH(handle));
	CALL(15, (void)engine->prepMemView(remote, view));
	CALL(16, (void)engine->prepMemView(located, view));
	CALL(17, engine->releaseMemView(view));
	CALL(18, (void)engine->getPublicData(metadata, text));
	CALL(19, (void)engine->getConnInfo(text));
	CALL(20, (void)engine->loadRemoteConnInfo(text, text));
	CALL(21, (void)engine->loadRemoteMD(registrable, DRAM_SEG, text, metadata));
	CALL(22, (void)engine->loadLocalMD(metadata, metadata));
	CALL(23, (void)engine->getNotifs(notifications));
	CALL(24, (void)engine->genNotif(text, text));
	CALL(25, (void)engine->queryMem(all, answers));
	CALL(26, (void)engine->estimateXferCost(NIXL_READ, located, located, text, handle, duration,
						margin, method));
}

}  // namespace

int main()
{
	weft_nixl::Parameters parameters = {{"key", "text"}};
	weft_nixl::BackendOptions options;

	options.agent = "agent";
	options.type = "WEFT";
	options.parameters = &parameters;

	/* The compiler may not know what is behind the pointer. */
	Ours *volatile ours = new Ours(&options);
	auto *theirs = reinterpret_cast<nixlBackendEngine *>(static_cast<weft_nixl::Backend *>(ours));

	call_all(theirs);
	if (!theirs->getInitErr() || theirs->getType() != "WEFT" ||
	    theirs->getCustomParams().at("key") != "text" || !theirs->getTelemetryEvents().empty()) {
		printf("members of a backend are elsewhere\n");
		failures++;
	}
	CALL(1, delete theirs);
	return failures ? 1 : 0;
}
