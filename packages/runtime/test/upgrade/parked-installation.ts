/** What belongs to the installation that wrote the databases of this folder, and not to the databases. */

/** 08:00, an hour before the calendar of one of the threads. */
export const WRITTEN_AT: number = Date.parse('2026-01-01T08:00:00.000Z')
export const SECRET_KEY: Uint8Array = new Uint8Array(32).fill(7)
export const KEYS_SEED = 'upgrade'
export const DOOR_KEY = 'blue-sesame-42'
