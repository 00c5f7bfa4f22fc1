/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The labels of spans, found by what they are made of: a number, or the addresses of a stack. So
 * many and no more. Pointers stay good until labels_free(). One thread.
 */
#pragma once

#include "analysis/spans.h"

enum {
	LABELS_E_FULL = 1,
};

struct labels;

int labels_new(uint32_t max, struct labels **ret);
struct labels *labels_free(struct labels *labels);
DEFINE_CLEANUP(struct labels *, labels_free)

/**
 * labels_find() - that of these bytes, or NULL
 */
const struct span_label *labels_find(const struct labels *labels, enum span_kind kind,
				     const void *key, size_t size);

/**
 * labels_add() - a new one
 * @text: is copied; "": it has none
 * Return: 0, LABELS_E_FULL or -ENOMEM.
 */
int labels_add(struct labels *labels, enum span_kind kind, const void *key, size_t size,
	       uint64_t number, const char *text, const struct span_label **ret);
