import type { Problem } from '../resolved.ts'

/** A spot in a definition, and where problems with it are written down. */
export interface Place {
  /** e.g. `agent "support"`. */
  readonly subject: string
  readonly file: string | undefined
  /** e.g. `sideA.prompt`; empty for the definition itself. */
  readonly field: string
  readonly problems: Problem[]
}

/** The place of a field or of an item below a place. */
export function at(place: Place, key: string | number): Place {
  if (typeof key === 'number') return { ...place, field: `${place.field}[${key}]` }
  return { ...place, field: place.field === '' ? key : `${place.field}.${key}` }
}

/** Writes a problem down. Answers undefined, so that a reader can return it. */
export function report({ subject, file, field, problems }: Place, message: string): undefined {
  problems.push({ subject, field, message, ...(file !== undefined && { file }) })
}
