/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdbool.h>
#include <string.h>

#include "basic/macro.h"
#include "formats/file-kind.h"

/*
 * Magic numbers: perf.data from tools/perf/util/header.c of Linux (PERFFILE was its first form),
 * zstd from RFC 8878, gzip RFC 1952, xz from its xz-file-format.txt, LZ4 and bzip2 from theirs, CTF
 * from its specification 1.8.3 in both byte orders.
 */
static const struct {
	const char *magic;
	size_t size;
	const char *name;
} kinds[] = {
	{"PERFILE2", 8, "perf.data of perf record: see perf script"},
	{"2ELIFREP", 8, "perf.data of perf record: see perf script"},
	{"PERFFILE", 8, "perf.data of perf record: see perf script"},
	{"\x28\xb5\x2f\xfd", 4, "compressed with zstd: decompress it first (zstd -d)"},
	{"\x1f\x8b", 2, "compressed with gzip: decompress it first (gzip -d)"},
	{"\xfd"
	 "7zXZ\0",
	 6, "compressed with xz: decompress it first (xz -d)"},
	{"BZh", 3, "compressed with bzip2: decompress it first (bzip2 -d)"},
	{"\x04\x22\x4d\x18", 4, "compressed with lz4: decompress it first (lz4 -d)"},
	{"\xc1\xfc\x1f\xc1", 4, "a CTF trace, as of LTTng: see babeltrace2"},
	{"\xc1\x1f\xfc\xc1", 4, "a CTF trace, as of LTTng: see babeltrace2"},
	{"\x7f"
	 "ELF",
	 4, "an ELF file, a program or a core dump"},
	{"\x7fTRACE0\n", 8, "a trace file of gdb: see flyrecctl import --format=gdb-tfile"},
	{"# tracer: ", 10, "the text of ftrace's file trace"},
	{"cpus=", 5, "the text of trace-cmd report"},
	{"version = ", 10, "the text of trace-cmd report"},
};

static bool read_varint(const uint8_t *bytes, size_t size, size_t *pos, uint64_t *ret)
{
	*ret = 0;
	for (unsigned shift = 0; *pos < size && shift < 35; shift += 7) {
		uint8_t byte = bytes[(*pos)++];

		*ret |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/*
 * Perfetto's traces have no magic: they are a protobuf message Trace, a sequence of TracePacket in
 * its field 1. Such a packet begins with one of few fields
 * (protos/perfetto/trace/trace_packet.proto)
 */
static bool is_perfetto(const uint8_t *bytes, size_t size)
{
	static const uint64_t first[] = {
		3 << 3,	     /* trusted_uid */
		6 << 3 | 2,  /* clock_snapshot */
		8 << 3,	     /* timestamp */
		10 << 3,     /* trusted_packet_sequence_id */
		33 << 3 | 2, /* trace_config */
		36 << 3 | 2, /* synchronization_marker */
		58 << 3,     /* timestamp_clock_id */
		59 << 3 | 2, /* trace_packet_defaults */
		89 << 3 | 2, /* trace_uuid */
	};
	uint64_t length, tag;
	size_t pos = 1;

	if (size < 4 || bytes[0] != (1 << 3 | 2) || !read_varint(bytes, size, &pos, &length) ||
	    length < 2 || !read_varint(bytes, size, &pos, &tag))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(first); i++)
		if (tag == first[i])
			return true;
	return false;
}

const char *file_kind(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (size >= kinds[i].size && memcmp(bytes, kinds[i].magic, kinds[i].size) == 0)
			return kinds[i].name;
	return is_perfetto(bytes, size) ? "a trace of Perfetto: see ui.perfetto.dev" : NULL;
}
