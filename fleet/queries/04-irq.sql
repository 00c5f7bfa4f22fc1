-- How much time did each interrupt handler take?
--   since, until
-- A row for each host and handler, who took most first.
WITH turns AS (
    SELECT host, session, name, irq, irq_name, toUnixTimestamp64Nano(ts) AS t,
        leadInFrame(name) OVER w AS next_name, leadInFrame(irq) OVER w AS next_irq,
        leadInFrame(toUnixTimestamp64Nano(ts)) OVER w AS next_t
    FROM flyrec.events
    WHERE name IN ('irq_handler_entry', 'irq_handler_exit')
        AND ts BETWEEN {since:DateTime64(9, 'UTC')} AND {until:DateTime64(9, 'UTC')}
    WINDOW w AS (PARTITION BY host, session, cpu ORDER BY ts, name ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)
)
SELECT host, session, irq, irq_name, count(*) AS n, round(sum(next_t - t) / 1e6, 3) AS ms,
    round(max(next_t - t) / 1e3, 1) AS max_us
FROM turns
WHERE name = 'irq_handler_entry' AND next_name = 'irq_handler_exit' AND next_irq = irq
GROUP BY host, session, irq, irq_name
ORDER BY ms DESC, host, session, irq, irq_name
LIMIT 1000
