/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#if HAVE_ZSTD
#include <zstd.h>
#endif

#include "writer/compressor.h"
#include "writer/sections.h"

#if HAVE_ZSTD

#define OUTPUT (128 * KIB)

struct compressor {
	ZSTD_CCtx *zstd;
	uint8_t output[OUTPUT];
};

static int failed(size_t r, struct fault *why)
{
	return fault_set(why, -EIO, "cannot compress: zstd: %s", ZSTD_getErrorName(r));
}

int compressor_new(int level, struct compressor **ret, struct fault *why)
{
	struct compressor *c = calloc(1, sizeof(*c));

	if (c)
		c->zstd = ZSTD_createCCtx();
	if (!c || !c->zstd ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, level)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_checksumFlag, 1))) {
		compressor_free(c);
		return fault_errno(why, -ENOMEM, "cannot compress");
	}
	*ret = c;
	return 0;
}

void compressor_free(struct compressor *c)
{
	if (!c)
		return;
	ZSTD_freeCCtx(c->zstd);
	free(c);
}

const char *compressor_version(void)
{
	return ZSTD_versionString();
}

size_t compressor_bound(size_t size)
{
	return ZSTD_compressBound(size);
}

int compressor_block(struct compressor *c, const void *bytes, size_t size, void *to, size_t *ret,
		     struct fault *why)
{
	size_t r = ZSTD_compress2(c->zstd, to, ZSTD_compressBound(size), bytes, size);

	if (ZSTD_isError(r))
		return failed(r, why);
	*ret = r;
	return 0;
}

int compressor_begin(struct compressor *c, uint64_t size, struct fault *why)
{
	size_t r = ZSTD_CCtx_reset(c->zstd, ZSTD_reset_session_only);

	if (!ZSTD_isError(r))
		r = ZSTD_CCtx_setPledgedSrcSize(c->zstd, size);
	return ZSTD_isError(r) ? failed(r, why) : 0;
}

int compressor_put(struct compressor *c, const void *bytes, size_t size, bool end, FILE *out,
		   struct fault *why)
{
	ZSTD_inBuffer in = {bytes, size, 0};
	size_t left;

	do {
		ZSTD_outBuffer to = {c->output, sizeof(c->output), 0};
		int r;

		left = ZSTD_compressStream2(c->zstd, &to, &in, end ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return failed(left, why);
		r = sections_put(out, c->output, to.pos);
		if (r < 0)
			return fault_errno(why, r, "cannot write");
	} while (in.pos < in.size || (end && left > 0));
	return 0;
}

#else

static int left_out(struct fault *why)
{
	return fault_set(why, -EOPNOTSUPP, "built without zstd: cannot compress");
}

int compressor_new(int level, struct compressor **ret, struct fault *why)
{
	return left_out(why);
}

void compressor_free(struct compressor *c)
{
}

const char *compressor_version(void)
{
	return "";
}

size_t compressor_bound(size_t size)
{
	return size;
}

int compressor_block(struct compressor *c, const void *bytes, size_t size, void *to, size_t *ret,
		     struct fault *why)
{
	return left_out(why);
}

int compressor_begin(struct compressor *c, uint64_t size, struct fault *why)
{
	return left_out(why);
}

int compressor_put(struct compressor *c, const void *bytes, size_t size, bool end, FILE *out,
		   struct fault *why)
{
	return left_out(why);
}

#endif
