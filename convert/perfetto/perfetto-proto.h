/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Numbers of fields in Perfetto's messages, protos/perfetto/ in its source: only those that are
 * written. A trace is a message with a TracePacket for each field.
 */
#pragma once

#define PERFETTO_PACKET 1 /* of the trace */

enum perfetto_packet {
	PACKET_FTRACE_EVENTS = 1,
	PACKET_PROCESS_TREE = 2,
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10, /* trusted_packet_sequence_id */
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_FTRACE_STATS = 34,
	PACKET_SYSTEM_INFO = 45,
	PACKET_TRACK_DESCRIPTOR = 60,
	PACKET_FIRST_ON_SEQUENCE = 87,
};

/* All packets are of one sequence */
#define PERFETTO_SEQUENCE      1
#define PERFETTO_STATE_CLEARED 1 /* flags of a sequence */
#define PERFETTO_NEEDS_STATE   2

enum perfetto_bundle {
	BUNDLE_CPU = 1,
	BUNDLE_EVENT = 2,
	BUNDLE_LOST_EVENTS = 3,
	BUNDLE_COMPACT_SCHED = 4,
	BUNDLE_PREVIOUS_END = 10,	/* from when on this CPU's events are complete */
	BUNDLE_GENERIC_DESCRIPTOR = 11, /* version 50 */
};

/* One number an event in each; the comms are indexes in the table */
enum perfetto_sched {
	SCHED_SWITCH_TIMESTAMP = 1,
	SCHED_SWITCH_PREV_STATE = 2,
	SCHED_SWITCH_NEXT_PID = 3,
	SCHED_SWITCH_NEXT_PRIO = 4,
	SCHED_INTERN_TABLE = 5,
	SCHED_SWITCH_NEXT_COMM = 6,
	SCHED_WAKING_TIMESTAMP = 7,
	SCHED_WAKING_PID = 8,
	SCHED_WAKING_TARGET_CPU = 9,
	SCHED_WAKING_PRIO = 10,
	SCHED_WAKING_COMM = 11,
	SCHED_WAKING_FLAGS = 12,
};

enum perfetto_event {
	EVENT_TIMESTAMP = 1,
	EVENT_PID = 2,
	EVENT_GENERIC = 327, /* GenericFtraceEvent */
	/* with an event's id: those that are described in the trace; up to 131072 */
	EVENT_DESCRIBED = 65536,
};

#define PERFETTO_FIELDS_MAX 31 /* of a described event; more are refused */

enum perfetto_descriptor {
	DESCRIPTOR_FIELD_ID = 1,
	DESCRIPTOR_EVENT = 2, /* google.protobuf.DescriptorProto: */
	DESCRIPTOR_NAME = 1,
	DESCRIPTOR_FIELD = 2,
	DESCRIPTOR_FIELD_NAME = 1,
	DESCRIPTOR_FIELD_NUMBER = 3,
	DESCRIPTOR_FIELD_LABEL = 4,
	DESCRIPTOR_FIELD_TYPE = 5,
};

enum perfetto_type {
	TYPE_INT64 = 3,
	TYPE_UINT64 = 4,
	TYPE_INT32 = 5,
	TYPE_BOOL = 8,
	TYPE_STRING = 9,
	TYPE_UINT32 = 13,
};

#define PERFETTO_LABEL_OPTIONAL 1

enum perfetto_generic {
	GENERIC_NAME = 1,
	GENERIC_FIELD = 2,
	GENERIC_FIELD_NAME = 1,
	GENERIC_FIELD_STRING = 3,
	GENERIC_FIELD_INT = 4,
	GENERIC_FIELD_UINT = 5,
};

enum perfetto_interned {
	INTERNED_KERNEL_SYMBOLS = 26,
	INTERNED_ID = 1,
	INTERNED_STRING = 2,
};

enum perfetto_clocks {
	CLOCKS_CLOCK = 1,
	CLOCKS_PRIMARY = 2,
	CLOCK_ID = 1,
	CLOCK_TIMESTAMP = 2,
};

enum perfetto_clock {
	CLOCK_IS_REALTIME = 1,
	CLOCK_IS_MONOTONIC = 3,
	CLOCK_IS_MONOTONIC_RAW = 5,
	CLOCK_IS_BOOTTIME = 6,
};

enum perfetto_system {
	SYSTEM_UTSNAME = 1,
	SYSTEM_CPUS = 8,
	UTSNAME_SYSNAME = 1,
	UTSNAME_RELEASE = 3,
	UTSNAME_MACHINE = 4,
};

enum perfetto_tree {
	TREE_PROCESS = 1,
	TREE_THREAD = 2,
	PROCESS_PID = 1,
	PROCESS_CMDLINE = 3,
	THREAD_TID = 1,
	THREAD_NAME = 2,
	THREAD_TGID = 3,
};

enum perfetto_stats {
	STATS_PHASE = 1,
	STATS_CPU = 2,
	STATS_PRESERVED = 8, /* there were events before the recording began */
	STATS_CPU_CPU = 1,
	STATS_CPU_ENTRIES = 2,
	STATS_CPU_OVERRUN = 3,
	STATS_CPU_COMMIT_OVERRUN = 4,
	STATS_CPU_BYTES = 5,
	STATS_CPU_DROPPED = 8,
	STATS_CPU_READ = 9,
};

enum { STATS_START = 1, STATS_END = 2 }; /* phases */

enum perfetto_track {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
	COUNTER_UNIT = 3,
};

#define PERFETTO_UNIT_COUNT 2

enum perfetto_track_event {
	TRACK_EVENT_ANNOTATION = 4,
	TRACK_EVENT_TYPE = 9,
	TRACK_EVENT_UUID = 11,
	TRACK_EVENT_CATEGORY = 22,
	TRACK_EVENT_NAME = 23,
	TRACK_EVENT_COUNTER = 30,
	ANNOTATION_UINT = 3,
	ANNOTATION_STRING = 6,
	ANNOTATION_NAME = 10,
};

enum {
	TRACK_EVENT_SLICE_BEGIN = 1,
	TRACK_EVENT_SLICE_END = 2,
	TRACK_EVENT_INSTANT = 3,
	TRACK_EVENT_IS_COUNTER = 4,
};
