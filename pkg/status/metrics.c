/* The table of all metrics, as in docs/metrics.md: hack/check docs. */
#include <stddef.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/portstats.h"
#include "pool/node.h"
#include "status/stats.h"
#include "status/status-internal.h"

static void put_build(struct writer *w, const struct metric *m)
{
	status_sample(&w->e, "");
	status_label(&w->e, "version", RAILMATE_VERSION);
	status_count(&w->e, 1);
}

/* field: of status_facts. */
static void put_count(struct writer *w, const struct metric *m)
{
	status_sample(&w->e, "");
	status_count(&w->e, *(const uint64_t *)((const char *)w->f + m->field));
}

static void put_seconds(struct writer *w, const struct metric *m)
{
	status_sample(&w->e, "");
	status_seconds(&w->e, *(const int64_t *)((const char *)w->f + m->field));
}

static void put_refused(struct writer *w, const struct metric *m)
{
	status_sample(&w->e, "");
	status_count(&w->e, w->f->machine.config_error != NULL);
}

/* Only conditions of fixed names, so that series stay few. */
static void put_limits(struct writer *w, const struct metric *m)
{
	const struct status_condition *v;
	size_t n = status_conditions(w->f, w->a, &v);

	for (size_t i = 0; i < n; i++) {
		if (!v[i].serves)
			continue;
		status_sample(&w->e, "");
		status_label(&w->e, "what", v[i].what);
		status_count(&w->e, v[i].problem != NULL);
	}
}

static void put_doctor(struct writer *w, const struct metric *m)
{
	const struct status_doctor *d = w->f->doctor;

	for (int v = 0; d && !d->failure && v < STATUS_FOUND_MAX; v++) {
		status_sample(&w->e, "");
		status_label(&w->e, "verdict", status_found_names[v]);
		status_count(&w->e, d->n_by_verdict[v]);
	}
}

/* field: of status_service. */
static void put_service_flag(struct writer *w, const struct metric *m)
{
	if (!w->f->service)
		return;
	status_sample(&w->e, "");
	status_count(&w->e, *(const bool *)((const char *)w->f->service + m->field));
}

/* A disk that hangs is no better than one that refuses. */
static void put_failing(struct writer *w, const struct metric *m)
{
	if (!w->f->service)
		return;
	status_sample(&w->e, "");
	status_count(&w->e, w->f->service->ledger_failing || w->f->service->ledger_late);
}

#define FACT(field)    offsetof(struct status_facts, field)
#define SERVICE(field) offsetof(struct status_service, field)
#define POOL(field)    offsetof(struct status_pool, field)
#define STATS(field)   offsetof(struct stats_pool, field)
#define VF(field)      offsetof(struct hw_vf_stats, field)

static const struct metric metrics[] = {
	{ "railmate_build", EXPOSITION_INFO, put_build, 0, "Version of railmated." },
	{ "process_cpu_seconds", EXPOSITION_COUNTER, put_seconds, FACT(process.cpu_ns),
	  "CPU time of the process, in user and in system mode." },
	{ "process_resident_memory_bytes", EXPOSITION_GAUGE, put_count,
	  FACT(process.resident_bytes), "Resident memory of the process." },
	{ "process_start_time_seconds", EXPOSITION_GAUGE, put_seconds, FACT(process.started_ns),
	  "Start of the process, Unix time." },
	{ "railmate_age_seconds", EXPOSITION_GAUGE, put_seconds, FACT(age_ns),
	  "Age of what the metrics of pools and VFs show: it grows when the service does not answer." },
	{ "railmate_scans", EXPOSITION_COUNTER, put_count, FACT(machine.scans),
	  "Scans of the hardware." },
	{ "railmate_scan_failures", EXPOSITION_COUNTER, put_count, FACT(machine.scan_failures),
	  "Scans that failed; the inventory before stays in use." },
	{ "railmate_scan_duration_seconds", EXPOSITION_GAUGE, put_seconds, FACT(machine.scan_ns),
	  "Duration of the last scan of the hardware." },
	{ "railmate_config_generation", EXPOSITION_GAUGE, put_count,
	  FACT(machine.config_generation), "Number of the configuration in use, from 1." },
	{ "railmate_config_errors", EXPOSITION_GAUGE, put_count, FACT(machine.config_errors),
	  "Errors of the configuration file as it is now." },
	{ "railmate_config_refused", EXPOSITION_GAUGE, put_refused, 0,
	  "1: the configuration file as it is now is refused, and the one before stays in use." },
	{ "railmate_limited", EXPOSITION_GAUGE, put_limits, 0,
	  "1: pods are served, and what railmated rests on is not seen: which pods run, or GPUs of a container." },
	{ "railmate_doctor_findings", EXPOSITION_GAUGE, put_doctor, 0,
	  "Findings of doctor at the start, or when the hardware changed last, by verdict." },
	{ "railmate_ledger_persistent", EXPOSITION_GAUGE, put_service_flag,
	  SERVICE(ledger_has_file), "1: the ledger is kept on disk; 0: in memory only." },
	{ "railmate_ledger_stored", EXPOSITION_GAUGE, put_service_flag, SERVICE(ledger_stored),
	  "1: the newest state of the ledger is on disk." },
	{ "railmate_ledger_failing", EXPOSITION_GAUGE, put_failing, 0,
	  "1: the ledger cannot be written to disk, or the disk has not stored it for 3 seconds." },
	{ "railmate_records_settled", EXPOSITION_GAUGE, put_service_flag, SERVICE(settled),
	  "1: all records of earlier starts were read, and containers may start." },
	{ "railmate_pool", EXPOSITION_INFO, status_put_pool_info, 0,
	  "Binding of a resource: early, late or shared." },
	{ "railmate_pool_devices", EXPOSITION_GAUGE, status_put_devices, 0,
	  "Devices of a resource by state; each is in one state." },
	{ "railmate_pool_shares", EXPOSITION_GAUGE, status_put_shares, 0,
	  "Shares of a resource whose HCAs containers share." },
	{ "railmate_pool_shares_held", EXPOSITION_GAUGE, status_put_shares_held, 0,
	  "Shares that a container has of it." },
	{ "railmate_pool_unhealthy_devices", EXPOSITION_GAUGE, status_put_unhealthy, 0,
	  "Devices of a resource that are not healthy, also those that containers have, by reason." },
	{ "railmate_pool_degraded_devices", EXPOSITION_GAUGE, status_put_degraded, 0,
	  "Devices of a resource whose PF's link flaps, counts errors or is slower than it was, healthy or not." },
	{ "railmate_pool_registered", EXPOSITION_GAUGE, status_put_registered, 0,
	  "1: the kubelet has registered the resource and watches its devices." },
	{ "railmate_pool_offer_differs", EXPOSITION_GAUGE, status_put_offer_differs, 0,
	  "1: the kubelet offers other devices of the resource than those that are healthy." },
	{ "railmate_pool_registrations", EXPOSITION_COUNTER, status_put_pool_count,
	  POOL(registrations), "Registrations with the kubelet." },
	{ "railmate_pool_registration_failures", EXPOSITION_COUNTER, status_put_pool_count,
	  POOL(register_failures), "Registrations that the kubelet refused or did not answer." },
	{ "railmate_pool_kubelet_restarts", EXPOSITION_COUNTER, status_put_stats_count,
	  STATS(kubelets), "Kubelet processes that took the place of another one." },
	{ "railmate_pool_pod_resources_failures", EXPOSITION_COUNTER, status_put_pool_count,
	  POOL(pod_resources_failures),
	  "Questions for the GPUs of a container that PodResources did not answer in time." },
	{ "railmate_pool_calls", EXPOSITION_COUNTER, status_put_calls, 0,
	  "Calls of the kubelet by method and gRPC code of the answer." },
	{ "railmate_pool_call_duration_seconds", EXPOSITION_HISTOGRAM, status_put_durations, 0,
	  "Time from the request to the answer of a call of the kubelet." },
	{ "railmate_pool_choices", EXPOSITION_COUNTER, status_put_choices, 0,
	  "Choices of VFs for a container, by how its GPUs were known." },
	{ "railmate_pool_pairs", EXPOSITION_COUNTER, status_put_pairs, 0,
	  "GPU-VF pairs of containers that started, by path class." },
	{ "railmate_pool_pairs_best", EXPOSITION_COUNTER, status_put_stats_count, STATS(pairs_best),
	  "Of those pairs: at the best path class that was free." },
	{ "railmate_pool_free_pairs", EXPOSITION_GAUGE, status_put_free_pairs, 0,
	  "Pairs of a free GPU and a free VF, each in one pair, by path class." },
	{ "railmate_vf", EXPOSITION_INFO, status_put_vfs, 0,
	  "A VF that a container has, with the GPUs that it serves and the farthest path class." },
	{ "railmate_vf_received_bytes", EXPOSITION_COUNTER, status_put_vf_traffic,
	  VF(received.bytes), "Bytes that a VF received, as its PF counts them." },
	{ "railmate_vf_transmitted_bytes", EXPOSITION_COUNTER, status_put_vf_traffic,
	  VF(sent.bytes), "Bytes that a VF sent, as its PF counts them." },
	{ "railmate_vf_received_packets", EXPOSITION_COUNTER, status_put_vf_traffic,
	  VF(received.packets), "Packets that a VF received, as its PF counts them." },
	{ "railmate_vf_transmitted_packets", EXPOSITION_COUNTER, status_put_vf_traffic,
	  VF(sent.packets), "Packets that a VF sent, as its PF counts them." },
	{ "railmate_vf_received_drops", EXPOSITION_COUNTER, status_put_vf_traffic,
	  VF(received.drops), "Packets for a VF that were dropped, as its PF counts them." },
	{ "railmate_vf_transmitted_drops", EXPOSITION_COUNTER, status_put_vf_traffic,
	  VF(sent.drops), "Packets of a VF that were dropped, as its PF counts them." },
	{ "railmate_vf_hw_counter", EXPOSITION_COUNTER, status_put_vf_counters, 0,
	  "Errors and congestion that the RDMA device of a VF counts, by the driver's name." },
	{ "railmate_port", EXPOSITION_INFO, status_put_port_info, 0, "A port of a PF." },
	{ "railmate_port_up", EXPOSITION_GAUGE, status_put_port_up, 0,
	  "1: the port is ACTIVE; of a PF without RDMA device: its interface has a carrier." },
	{ "railmate_port_state", EXPOSITION_GAUGE, status_put_port_state, 0,
	  "State of the port, in the kernel's word." },
	{ "railmate_port_degraded", EXPOSITION_GAUGE, status_put_port_degraded, 0,
	  "1: the port of a PF of a pool flaps, counts errors or is slow, by reason." },
	{ "railmate_port_rate_bytes_per_second", EXPOSITION_GAUGE, status_put_port_rate, 0,
	  "Rate of the port." },
	{ "railmate_port_carrier_changes", EXPOSITION_COUNTER, status_put_port_carrier, 0,
	  "Changes of the carrier of the port's network interface, up and down." },
	{ "railmate_port_received_bytes", EXPOSITION_COUNTER, status_put_port_counter, 0,
	  "Bytes received (port_rcv_data)." },
	{ "railmate_port_transmitted_bytes", EXPOSITION_COUNTER, status_put_port_counter, 1,
	  "Bytes sent (port_xmit_data)." },
	{ "railmate_port_received_packets", EXPOSITION_COUNTER, status_put_port_counter, 2,
	  "Packets received (port_rcv_packets)." },
	{ "railmate_port_transmitted_packets", EXPOSITION_COUNTER, status_put_port_counter, 3,
	  "Packets sent (port_xmit_packets)." },
	{ "railmate_port_link_down", EXPOSITION_COUNTER, status_put_port_counter, 4,
	  "Times that the link went down (link_downed)." },
	{ "railmate_port_transmit_wait_ticks", EXPOSITION_COUNTER, status_put_port_counter, 5,
	  "Ticks in which the port had something to send and was not allowed to (port_xmit_wait)." },
	{ "railmate_port_errors", EXPOSITION_COUNTER, status_put_port_errors, 0,
	  "Other standard counters of the port, by the kernel's name." },
	{ "railmate_port_hw_counter", EXPOSITION_COUNTER, status_put_port_driver, 0,
	  "Counters of the port's driver (hw_counters), by the driver's name." },
	{ "railmate_port_received_pause_frames", EXPOSITION_COUNTER, status_put_port_pauses, 0,
	  "Pause frames received: PFC by priority, and those of the whole link." },
	{ "railmate_port_transmitted_pause_frames", EXPOSITION_COUNTER, status_put_port_pauses,
	  PAUSES_SENT, "Pause frames sent: PFC by priority, and those of the whole link." },
	{ "railmate_port_received_pause_seconds", EXPOSITION_COUNTER, status_put_port_pauses,
	  PAUSES_TIME, "Time that pause frames held up the port." },
	{ "railmate_port_transmitted_pause_seconds", EXPOSITION_COUNTER, status_put_port_pauses,
	  PAUSES_SENT | PAUSES_TIME, "Time that the port held up its peer by pause frames." },
	{ "railmate_port_received_discards", EXPOSITION_COUNTER, status_put_port_pauses,
	  PAUSES_DROPPED, "Packets received and dropped for want of buffers, by priority." },
};

void status_write_metrics(const struct status_facts *f, struct strbuf *out)
{
	_cleanup_arena_ struct arena *a = arena_new(32 * 1024);
	struct writer w = { .e = { .out = out }, .f = f, .a = a };

	for (size_t i = 0; i < ARRAY_LEN(metrics); i++) {
		const struct metric *m = &metrics[i];

		status_family(&w.e, m->name, m->type, m->help);
		m->put(&w, m);
	}
}
