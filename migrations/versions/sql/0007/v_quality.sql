-- A row is what was last known of an app and scorer: precision and recall of the threshold that was in force then, or
-- of the one that the run made.
CREATE OR REPLACE VIEW v_quality AS
SELECT DISTINCT ON (app, scorer_id)
    time,
    app,
    scorer,
    coalesce(threshold_version, in_force) AS threshold_version,
    n_labels,
    effective_n,
    prior,
    recall,
    recall_low,
    recall_high,
    "precision",
    precision_low,
    precision_high,
    flagged_share,
    scorer_id
FROM v_calibration_runs
WHERE recall IS NOT NULL OR "precision" IS NOT NULL
ORDER BY app, scorer_id, time DESC, run_id DESC;
