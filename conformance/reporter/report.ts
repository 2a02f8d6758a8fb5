import type { TestOutcome } from './results.ts'
import { rowsNamedBy } from './rows.ts'
import type { Spec } from './rows.ts'

/** What `conformance/report.json` holds per specification. */
export interface SpecReport {
  readonly rows: number
  readonly proved: number
  readonly failing: readonly string[]
  readonly missing: readonly string[]
}

export interface Report {
  readonly specs: Readonly<Record<string, SpecReport>>
}

export interface Evaluation {
  readonly report: Report
  /** Test files that prove a row, by row id. */
  readonly proofs: ReadonlyMap<string, readonly string[]>
  /** Tests that break the rules: of naming, or because they prove nothing. Each fails the command. */
  readonly problems: readonly string[]
}

const maxRowsPerTest = 3

/**
 * Decides what the tests prove. A row is proved when at least one test that names it passed and none
 * failed; a test that was skipped is as good as absent.
 */
export function evaluate(specs: readonly Spec[], tests: readonly TestOutcome[]): Evaluation {
  const known = new Set(specs.flatMap(({ rows }) => rows.map(({ id }) => id)))
  const passed = new Map<string, Set<string>>()
  const failed = new Set<string>()
  const problems: string[] = []

  for (const { title, file, status, provesNothing } of tests) {
    const ids = rowsNamedBy(title)
    const unknown = ids.filter((id) => !known.has(id))
    if (unknown.length > 0)
      problems.push(`${file}: "${title}" names ${unknown.join(', ')}, which is no row.`)
    if (ids.length > maxRowsPerTest) {
      problems.push(
        `${file}: "${title}" names ${ids.length} rows; a test proves at most ${maxRowsPerTest}.`,
      )
      continue
    }
    if (ids.length > 0 && provesNothing !== undefined) {
      problems.push(`${file}: "${title}" ${provesNothing}, so it proves no row.`)
      continue
    }
    for (const id of ids) {
      if (status === 'failed') failed.add(id)
      if (status === 'passed') passed.set(id, (passed.get(id) ?? new Set()).add(file))
    }
  }

  const proofs = new Map(
    [...passed].filter(([id]) => !failed.has(id)).map(([id, files]) => [id, [...files].toSorted()]),
  )
  return { report: { specs: summarise(specs, proofs, failed) }, proofs, problems }
}

function summarise(
  specs: readonly Spec[],
  proofs: ReadonlyMap<string, unknown>,
  failed: ReadonlySet<string>,
): Record<string, SpecReport> {
  return Object.fromEntries(
    specs.map(({ spec, rows }) => {
      const ids = rows.map(({ id }) => id)
      return [
        spec,
        {
          rows: ids.length,
          proved: ids.filter((id) => proofs.has(id)).length,
          failing: ids.filter((id) => failed.has(id)),
          missing: ids.filter((id) => !proofs.has(id) && !failed.has(id)),
        },
      ]
    }),
  )
}
