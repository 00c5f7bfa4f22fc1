-- What is there of a window, and what is missing?
--   since, until
-- A row for each host and session: how much of the window its files reach over, events, how many were
-- lost (lost_places: before how many events; of some places only that there were losses is known), and
-- how well the clock was kept. What is not here cannot be in the answers of the other queries.
WITH
spans AS (
    SELECT host, session, file, min(toUnixTimestamp64Nano(from_ts)) AS from_t,
        max(toUnixTimestamp64Nano(to_ts)) AS to_t
    FROM flyrec.snapshots
    WHERE to_ts >= {since:DateTime64(9, 'UTC')} AND from_ts <= {until:DateTime64(9, 'UTC')}
    GROUP BY host, session, file
),
recorded AS (
    SELECT host, session, count(*) AS events, sum(greatest(lost_before, 0)) AS lost,
        countIf(lost_before != 0) AS lost_places
    FROM flyrec.events
    WHERE ts BETWEEN {since:DateTime64(9, 'UTC')} AND {until:DateTime64(9, 'UTC')}
    GROUP BY host, session
),
clock_errors AS (SELECT host, max(maxerror) AS error_us FROM flyrec.clocks GROUP BY host)
SELECT spans.host AS host, spans.session AS session, count(*) AS files,
    round(100 * (least(max(to_t), toUnixTimestamp64Nano({until:DateTime64(9, 'UTC')}))
        - greatest(min(from_t), toUnixTimestamp64Nano({since:DateTime64(9, 'UTC')})))
        / (toUnixTimestamp64Nano({until:DateTime64(9, 'UTC')})
        - toUnixTimestamp64Nano({since:DateTime64(9, 'UTC')})), 1) AS percent,
    coalesce(max(events), 0) AS n_events, coalesce(max(lost), 0) AS n_lost,
    coalesce(max(lost_places), 0) AS n_lost_places,
    coalesce(max(error_us), 4294967295) AS error_us
FROM spans
LEFT JOIN recorded ON spans.host = recorded.host AND spans.session = recorded.session
LEFT JOIN clock_errors ON spans.host = clock_errors.host
GROUP BY spans.host, spans.session
ORDER BY host, session
SETTINGS join_use_nulls = 1
