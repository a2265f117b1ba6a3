-- The UUID that a text names: the same text always names the same.
CREATE OR REPLACE FUNCTION named_uuid(name text) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS $$
    SELECT overlay(overlay(left(encode(sha256(convert_to(name, 'UTF8')), 'hex'), 32) PLACING '5' FROM 13)
        PLACING 'a' FROM 17)::uuid
$$;

REVOKE EXECUTE ON FUNCTION named_uuid(text) FROM PUBLIC;
