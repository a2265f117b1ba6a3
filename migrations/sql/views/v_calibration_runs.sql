CREATE OR REPLACE VIEW v_calibration_runs AS
SELECT
    r.ran_at AS time,
    r.app,
    c.label AS scorer,
    r.trigger,
    r.outcome,
    r.reason,
    coalesce(before.app, '*') || '/' || before.version AS in_force,
    coalesce(made.app, '*') || '/' || made.version AS threshold_version,
    before.flag_below AS flag_below_before,
    made.flag_below,
    (r.numbers ->> 'n_labels')::double precision::integer AS n_labels,
    (r.numbers ->> 'n_unsupported')::double precision::integer AS n_unsupported,
    (r.numbers ->> 'effective_n')::double precision AS effective_n,
    (r.numbers ->> 'prior')::double precision AS prior,
    (r.numbers ->> 'recall')::double precision AS recall,
    (r.numbers ->> 'recall_low')::double precision AS recall_low,
    (r.numbers ->> 'recall_high')::double precision AS recall_high,
    (r.numbers ->> 'precision')::double precision AS "precision",
    (r.numbers ->> 'precision_low')::double precision AS precision_low,
    (r.numbers ->> 'precision_high')::double precision AS precision_high,
    (r.numbers ->> 'flagged_share')::double precision AS flagged_share,
    (r.numbers ->> 'psi')::double precision AS psi,
    r.scorer_id,
    r.id AS run_id,
    r.numbers ->> 'refit' AS refit,
    (r.numbers ->> 'refit_auc_champion')::double precision AS auc_in_force,
    (r.numbers ->> 'refit_auc_challenger')::double precision AS auc_learned,
    (r.numbers ->> 'refit_difference')::double precision AS auc_difference,
    (r.numbers ->> 'refit_standard_error')::double precision AS auc_standard_error,
    (r.numbers ->> 'refit_auc_lexical')::double precision AS auc_lexical
FROM calibration_runs r
JOIN scorers c ON c.id = r.scorer_id
JOIN thresholds before ON before.id = r.in_force_id
LEFT JOIN thresholds made ON made.id = r.threshold_id;
