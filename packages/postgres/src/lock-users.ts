/** Locks users until the end of the transaction. Uses advisory locks, because a user without values has no row. */
export function lockUsers(s: string): string {
  return `SELECT pg_advisory_xact_lock(key) FROM (
    SELECT DISTINCT hashtextextended('skein user ${s.replaceAll('"', '')} ' || name, 0) AS key
    FROM unnest($1::text[]) name ORDER BY 1) keys`
}
