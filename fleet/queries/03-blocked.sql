-- Which tasks were blocked (D) longest, and who woke them?
--   since, until
-- A row a sleep, the longest first. began_at is right to error_us either way.
WITH
steps AS (
    SELECT host, session, prev_pid AS pid, prev_comm AS task, unit, toUnixTimestamp64Nano(ts) AS t,
        if(bitAnd(prev_state, 2) != 0, 'd', 'o') AS k
    FROM flyrec.events
    WHERE name = 'sched_switch' AND prev_pid > 0
        AND ts BETWEEN {since:DateTime64(9, 'UTC')} AND {until:DateTime64(9, 'UTC')}
    UNION ALL
    SELECT host, session, target_pid, comm, unit, toUnixTimestamp64Nano(ts), 'w'
    FROM flyrec.events
    WHERE name IN ('sched_waking', 'sched_wakeup')
        AND ts BETWEEN {since:DateTime64(9, 'UTC')} AND {until:DateTime64(9, 'UTC')}
),
turns AS (
    SELECT host, session, pid, task, unit, t, k, leadInFrame(t) OVER w AS woken,
        leadInFrame(k) OVER w AS next_k, leadInFrame(task) OVER w AS waker,
        leadInFrame(unit) OVER w AS waker_unit
    FROM steps
    WINDOW w AS (PARTITION BY host, session, pid ORDER BY t, k ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)
),
clock_errors AS (SELECT host, max(maxerror) AS error_us FROM flyrec.clocks GROUP BY host)
SELECT turns.host AS host, turns.session AS session, task, pid, unit,
    round((woken - t) / 1e6, 3) AS ms, waker, waker_unit,
    fromUnixTimestamp64Nano(t, 'UTC') AS began_at, coalesce(error_us, 4294967295) AS error_us
FROM turns LEFT JOIN clock_errors ON turns.host = clock_errors.host
WHERE k = 'd' AND next_k = 'w'
ORDER BY ms DESC, host, session, pid, began_at
LIMIT 100
SETTINGS join_use_nulls = 1
