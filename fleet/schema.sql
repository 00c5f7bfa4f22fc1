-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Tables for recordings of many hosts: ClickHouse, or chdb. `flyrec-fleet load` fills them with what
-- `flyrecctl export --format=clickhouse` prints; flyrec-clickhouse(7) says what each column is.
--
-- Rows of one kind of event, host and time are beside each other, which is what makes them small and
-- questions quick. Columns that a kind of event does not have are all zero there and take no room.
-- The deduplication window is so many inserted blocks whose tokens are known: the same again is left out.
CREATE DATABASE IF NOT EXISTS flyrec;

CREATE TABLE IF NOT EXISTS flyrec.events
(
    host LowCardinality(String),
    boot_id LowCardinality(String),
    session LowCardinality(String),
    file LowCardinality(String),
    ts DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    cpu UInt16 CODEC(ZSTD(1)),
    pid Int32 CODEC(ZSTD(1)),
    tgid Int32 CODEC(ZSTD(1)),
    comm LowCardinality(String) CODEC(ZSTD(1)),
    unit LowCardinality(String) CODEC(ZSTD(1)),
    container LowCardinality(String) CODEC(ZSTD(1)),
    system LowCardinality(String),
    name LowCardinality(String),
    lost_before Int64 CODEC(ZSTD(1)), -- on this CPU; -1: some
    prev_comm LowCardinality(String) CODEC(ZSTD(1)),
    prev_pid Int32 CODEC(ZSTD(1)),
    prev_prio Int32 CODEC(ZSTD(1)),
    prev_state Int64 CODEC(ZSTD(1)),
    next_comm LowCardinality(String) CODEC(ZSTD(1)),
    next_pid Int32 CODEC(ZSTD(1)),
    next_prio Int32 CODEC(ZSTD(1)),
    target_comm LowCardinality(String) CODEC(ZSTD(1)),
    target_pid Int32 CODEC(ZSTD(1)),
    target_prio Int32 CODEC(ZSTD(1)),
    target_cpu Int32 CODEC(ZSTD(1)),
    irq Int32 CODEC(ZSTD(1)),
    irq_name LowCardinality(String) CODEC(ZSTD(1)),
    vec UInt32 CODEC(ZSTD(1)),
    dev UInt32 CODEC(ZSTD(1)), -- major << 20 | minor
    sector UInt64 CODEC(ZSTD(1)),
    nr_sector UInt32 CODEC(ZSTD(1)),
    rwbs LowCardinality(String) CODEC(ZSTD(1)),
    nr Int64 CODEC(ZSTD(1)), -- of a system call
    ret Int64 CODEC(ZSTD(1)),
    args Array(UInt64) CODEC(ZSTD(1)),
    fields String CODEC(ZSTD(1)) -- all as JSON, of events that have others than those above
)
ENGINE = MergeTree
PARTITION BY toStartOfHour(ts)
ORDER BY (name, host, ts)
SETTINGS non_replicated_deduplication_window = 10000;

-- Each time that a task waited for a CPU or was blocked for 1 ms or longer, as flyrec's analysis finds it
-- in the whole file: a question about these need not look at events.
CREATE TABLE IF NOT EXISTS flyrec.waits
(
    host LowCardinality(String),
    boot_id LowCardinality(String),
    session LowCardinality(String),
    file LowCardinality(String),
    ts DateTime64(9, 'UTC'),         -- when it began
    nsec UInt64,
    kind LowCardinality(String),     -- runqueue: for a CPU; blocked: in D state
    preempted UInt8,                 -- runqueue: it had not slept
    open UInt8,                      -- it had not ended when the file did
    cpu UInt16,                      -- where it ended
    pid Int32,
    tgid Int32,
    comm LowCardinality(String),
    unit LowCardinality(String),
    container LowCardinality(String),
    waker LowCardinality(String),    -- task, idle, irq, softirq; "": not known, or preempted
    waker_pid Int32,
    waker_comm LowCardinality(String),
    waker_unit LowCardinality(String),
    ran_pid Array(Int32),            -- runqueue: who had the CPU meanwhile, the longest first; 0: idle
    ran_comm Array(String),
    ran_unit Array(String),
    ran_nsec Array(UInt64),
    ran_others UInt64                -- nanoseconds of all beyond 16
)
ENGINE = MergeTree
PARTITION BY toStartOfHour(ts)
ORDER BY (kind, unit, host, ts)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS flyrec.tasks
(
    host LowCardinality(String),
    boot_id LowCardinality(String),
    session LowCardinality(String),
    file LowCardinality(String),
    pid Int32,
    tgid Int32,
    comm LowCardinality(String),
    unit LowCardinality(String),
    container LowCardinality(String),
    cgroup LowCardinality(String),
    from_ts DateTime64(9, 'UTC'), -- 1970: before the file begins
    to_ts DateTime64(9, 'UTC')    -- 2262: still
)
ENGINE = MergeTree
ORDER BY (host, boot_id, pid)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS flyrec.clocks
(
    host LowCardinality(String),
    boot_id LowCardinality(String),
    session LowCardinality(String),
    file LowCardinality(String),
    at LowCardinality(String),
    ts DateTime64(9, 'UTC'), -- the wall clock
    clock LowCardinality(String),
    trace UInt64,            -- that clock
    mono_raw UInt64,
    boot UInt64,
    width UInt32,            -- nanoseconds that the reading took
    maxerror UInt32,         -- microseconds by which ts may be wrong; 4294967295: not known
    status UInt32,
    tai Int32
)
ENGINE = MergeTree
ORDER BY (host, ts)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS flyrec.findings
(
    host LowCardinality(String),
    boot_id LowCardinality(String),
    session LowCardinality(String),
    file LowCardinality(String),
    ts DateTime64(9, 'UTC'),
    nsec UInt64,
    score UInt64,
    rule LowCardinality(String),
    pid Int32,
    task LowCardinality(String),
    unit LowCardinality(String),
    text LowCardinality(String)
)
ENGINE = MergeTree
ORDER BY (host, ts)
SETTINGS non_replicated_deduplication_window = 10000;

-- A row for each cause of each file; one of a file without a cause, too. Loaded last: a file that is
-- here is complete.
CREATE TABLE IF NOT EXISTS flyrec.snapshots
(
    host LowCardinality(String),
    boot_id LowCardinality(String),
    session LowCardinality(String),
    file LowCardinality(String),
    ts DateTime64(9, 'UTC'), -- of the trigger; 1970: none
    id LowCardinality(String),   -- the same on all hosts that were asked for it; "": none
    reason LowCardinality(String),
    text LowCardinality(String),
    from_ts DateTime64(9, 'UTC'),
    to_ts DateTime64(9, 'UTC'),
    cpus UInt16,
    bytes UInt64
)
ENGINE = MergeTree
ORDER BY (host, from_ts)
SETTINGS non_replicated_deduplication_window = 10000;
