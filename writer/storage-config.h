/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where a session's data goes: the [Storage] section as plain values; the words are journald's.
 * Filled in by daemon/config, read by writer/. Owner: the session's config; main thread.
 */
#pragma once

#include "basic/macro.h"

#define STORAGE_DEFAULT UINT64_MAX /* not set: worked out from the file system's size */

enum storage_direct {
	STORAGE_DIRECT_AUTO,
	STORAGE_DIRECT_YES,
	STORAGE_DIRECT_NO,
};

enum storage_compress {
	STORAGE_COMPRESS_NO,
	STORAGE_COMPRESS_ZSTD,
};

/* How data is taken out of the ring buffer */
enum storage_drain {
	STORAGE_DRAIN_AUTO,
	STORAGE_DRAIN_SPLICE,
	STORAGE_DRAIN_READ,
};

struct storage_config {
	uint64_t max_use;	/* bytes; STORAGE_DEFAULT: 10 % of the file system, at most 4 G */
	uint64_t keep_free;	/* bytes; STORAGE_DEFAULT: 15 % of the file system, at most 4 G */
	uint64_t max_file_size; /* bytes; STORAGE_DEFAULT: an eighth of max_use */
	uint64_t max_file_usec; /* 0: no limit; default 1 day */
	uint64_t max_files;	/* 0: no limit; default 100 */
	uint64_t max_retention_usec; /* 0: no limit (default) */
	uint64_t sync_interval_usec; /* default 30 s */
	uint64_t flush_usec;	     /* default 5 s */
	enum storage_direct direct;
	enum storage_compress compress; /* finished segments; default no */
	enum storage_drain drain;
};
