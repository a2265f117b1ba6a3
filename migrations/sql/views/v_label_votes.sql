-- What a label says of its sentence: partly supported is unsupported, what claims nothing is supported, and who cannot
-- tell has no vote.
CREATE OR REPLACE VIEW v_label_votes (label, unsupported) AS
VALUES ('supported', false), ('not_a_claim', false), ('partly', true), ('unsupported', true), ('cant_tell', NULL);
