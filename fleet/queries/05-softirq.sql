-- How much time did each kind of softirq take?
--   since, until
-- A row for each host and kind (vec: 0 HI, 1 TIMER, 2 NET_TX, 3 NET_RX, 4 BLOCK, 5 IRQ_POLL, 6 TASKLET,
-- 7 SCHED, 8 HRTIMER, 9 RCU), who took most first; with interrupts that came meanwhile.
WITH turns AS (
    SELECT host, session, name, vec, toUnixTimestamp64Nano(ts) AS t,
        leadInFrame(name) OVER w AS next_name, leadInFrame(vec) OVER w AS next_vec,
        leadInFrame(toUnixTimestamp64Nano(ts)) OVER w AS next_t
    FROM flyrec.events
    WHERE name IN ('softirq_entry', 'softirq_exit')
        AND ts BETWEEN {since:DateTime64(9, 'UTC')} AND {until:DateTime64(9, 'UTC')}
    WINDOW w AS (PARTITION BY host, session, cpu ORDER BY ts, name ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)
)
SELECT host, session, vec, count(*) AS n, round(sum(next_t - t) / 1e6, 3) AS ms,
    round(max(next_t - t) / 1e3, 1) AS max_us
FROM turns
WHERE name = 'softirq_entry' AND next_name = 'softirq_exit' AND next_vec = vec
GROUP BY host, session, vec
ORDER BY ms DESC, host, session, vec
LIMIT 1000
