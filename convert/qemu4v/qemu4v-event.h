/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines of convert/qemu4v/qemu4v.h as events of a trace.dat: system "qemu4v" with the events insn,
 * mem, reg and text. Each has the time as the line says it, the number of the line, and how it was
 * written ("form"), so that the line can be printed again. Numbers are in this machine's byte
 * order. Pure functions over memory; any thread.
 */
#pragma once

#include "convert/qemu4v/qemu4v.h"
#include "formats/event-head.h"

#define QEMU4V_SYSTEM	"qemu4v"
#define QEMU4V_TEXT_MAX 3900U /* bytes of text in an event: more goes into further ones */

/* By enum qemu4v_kind, as events/qemu4v/NAME/format */
extern const char *const qemu4v_event_formats[_QEMU4V_KIND_MAX];

/**
 * qemu4v_event_size() - bytes that the event of a record has
 * Return: 0 if it is too large for one: its line has to be a text then, in pieces of at most
 * QEMU4V_TEXT_MAX bytes.
 */
size_t qemu4v_event_size(const struct qemu4v_record *record);

/**
 * qemu4v_event_write() - make the event
 * @line: number of the line, from 1 on
 * @pid: common_pid
 * @out: qemu4v_event_size() bytes, aligned to 4
 */
void qemu4v_event_write(const struct qemu4v_record *record, uint64_t line, int32_t pid, void *out);

/**
 * qemu4v_event_read() - the record of an event, and its line
 * @kind: which of the events it is
 * @cpu: whose ring buffer it was in
 * @data: @size bytes nobody vouches for; @ret points into them
 * Return: 0, or -EBADMSG: shorter than its fields, a text outside of it, numbers out of range.
 */
int qemu4v_event_read(enum qemu4v_kind kind, uint32_t cpu, const void *data, size_t size,
		      struct qemu4v_record *ret, uint64_t *ret_line);

/**
 * qemu4v_event_line() - the number of the line alone; 0: too short
 */
uint64_t qemu4v_event_line(const void *data, size_t size);
