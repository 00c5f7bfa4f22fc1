/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SQL made of what the grammar has, for fuzz-query, which asks it of files that are sound and stay
 * open, and for fuzz-query-file, which asks it of any bytes as a trace.dat.
 *
 * What is asked must end, within its memory, and never change anything; an error has to say why.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct query_target;

/** query_target_sound() - descriptor of a new trace.dat that has all kinds of events of
 * tests/unit/analysis-fixture.h */
int query_target_sound(void);

/**
 * query_target_open() - to ask it of a file
 * @twice: as two sources
 * Return: NULL if the file is refused; the descriptor stays the caller's
 */
struct query_target *query_target_open(int fd, bool twice);
void query_target_close(struct query_target *target);

/** query_target_ask() - one statement, that each byte chooses a part of; aborts where something is
 * wrong */
void query_target_ask(struct query_target *target, const uint8_t *choices, size_t n);
