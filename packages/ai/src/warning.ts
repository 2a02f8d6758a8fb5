/** Something the caller asked for that was dropped or changed on the way to the vendor. */
export interface Warning {
  /** Stable, e.g. `unsupported_block`, `schema_changed`, `foreign_reasoning_dropped`. */
  readonly code: string
  readonly message: string
  /** JSON pointer into the request, where one can be named. */
  readonly pointer?: string
}
