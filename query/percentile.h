/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The SQL functions percentile(VALUE, P) and median(VALUE), as those of SQLite's own extension
 * percentile.c: of numbers, NULLs left out, between two neighbours in proportion; exact.
 */
#pragma once

#include "query/sqlite.h"

/**
 * percentile_add() - make them known; Return: of SQLite.
 */
int percentile_add(sqlite3 *db);
