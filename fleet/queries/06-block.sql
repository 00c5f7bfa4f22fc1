-- How long did the requests of each block device take?
--   since, until
-- A row for each host, device and kind of request (R read, W write, F flush, S synchronous, M metadata).
WITH turns AS (
    SELECT host, session, name, dev, rwbs, toUnixTimestamp64Nano(ts) AS t,
        leadInFrame(name) OVER w AS next_name, leadInFrame(toUnixTimestamp64Nano(ts)) OVER w AS next_t
    FROM flyrec.events
    WHERE name IN ('block_rq_issue', 'block_rq_complete')
        AND ts BETWEEN {since:DateTime64(9, 'UTC')} AND {until:DateTime64(9, 'UTC')}
    WINDOW w AS (PARTITION BY host, session, dev, sector ORDER BY ts, name DESC
        ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)
)
SELECT host, session, intDiv(dev, 1048576) AS major, dev % 1048576 AS minor, rwbs, count(*) AS n,
    round(quantileExactInclusive(0.5)(next_t - t) / 1e3, 1) AS p50_us,
    round(quantileExactInclusive(0.99)(next_t - t) / 1e3, 1) AS p99_us,
    round(max(next_t - t) / 1e3, 1) AS max_us
FROM turns
WHERE name = 'block_rq_issue' AND next_name = 'block_rq_complete'
GROUP BY host, session, major, minor, rwbs
ORDER BY max_us DESC, host, session, major, minor, rwbs
LIMIT 1000
