-- Which tasks were blocked (D) longest, and who woke them?
--   since, until
-- A row a sleep of 1 ms or longer, the longest first. waker is who was running when it was woken, or
-- what woke it: irq, softirq, idle. began_at is right to error_us either way.
WITH
-- Several files may have the same sleep; in one that ends before the sleep does it is shorter
found AS (
    SELECT host, session, pid, ts AS began_at, max(nsec) AS slept,
        argMax(comm, (nsec, file)) AS task, argMax(unit, (nsec, file)) AS of_unit,
        argMax(if(waker = 'task', waker_comm, waker), (nsec, file)) AS woken_by,
        argMax(waker_unit, (nsec, file)) AS of_waker
    FROM flyrec.waits
    WHERE kind = 'blocked' AND ts >= {since:DateTime64(9, 'UTC')}
        AND toUnixTimestamp64Nano(ts) + nsec <= toUnixTimestamp64Nano({until:DateTime64(9, 'UTC')})
    GROUP BY host, session, pid, ts
),
clock_errors AS (SELECT host, max(maxerror) AS error_us FROM flyrec.clocks GROUP BY host)
SELECT found.host AS host, session, task, pid, of_unit AS unit, round(slept / 1e6, 3) AS ms,
    woken_by AS waker, of_waker AS waker_unit, began_at, coalesce(error_us, 4294967295) AS error_us
FROM found LEFT JOIN clock_errors ON found.host = clock_errors.host
ORDER BY ms DESC, host, session, pid, began_at
LIMIT 100
SETTINGS join_use_nulls = 1
