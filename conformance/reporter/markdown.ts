import type { Evaluation } from './report.ts'
import type { Spec } from './rows.ts'

/** A clause of a row that was violated on purpose, and when a test of the row was last seen to notice. */
export interface BrokenClause {
  readonly clause: string
  readonly at: string
}

/** The conformance page of the docs: one table of counts, then every row with the tests that prove it. */
export function toMarkdown(
  specs: readonly Spec[],
  { report, proofs }: Evaluation,
  broken: ReadonlyMap<string, readonly BrokenClause[]> = new Map(),
): string {
  return [
    '# Conformance',
    '',
    'Written by `npm run conformance`; do not edit. A row is proved when a test whose title begins with',
    'its id passed and none failed. *Broken* names the clauses that were violated on purpose, one at a time,',
    'and the day on which a test of the row was last seen to fail because of it',
    '(`npm run conformance -- --breaks`). `conformance/README.md` explains the rules.',
    '',
    '| specification | version | rows | proved | failing | without a test | broken and noticed |',
    '| --- | --- | ---: | ---: | ---: | ---: | ---: |',
    ...specs.map(({ spec, version, rows: specRows }) => {
      const { rows, proved, failing, missing } = report.specs[spec]!
      const seen = specRows.filter(({ id }) => broken.get(id)?.length).length
      return `| ${spec} | ${version} | ${rows} | ${proved} | ${failing.length} | ${missing.length} | ${seen} |`
    }),
    ...specs.flatMap(({ spec, rows }) => [
      '',
      `## ${spec}`,
      '',
      '| row | § | what | proved by | broken |',
      '| --- | --- | --- | --- | --- |',
      ...rows.map(({ id, section, title }) => {
        const state = report.specs[spec]!.failing.includes(id) ? '**failing**' : '–'
        const tests = fileList(proofs.get(id)) ?? state
        return `| ${id} | ${section} | ${title} | ${tests} | ${clauseList(broken.get(id))} |`
      }),
    ]),
    '',
  ].join('\n')
}

function fileList(files: readonly string[] | undefined): string | undefined {
  if (files === undefined) return undefined
  const shown = files.slice(0, 2).map((file) => `[${file}](../${file})`)
  return files.length > 2 ? `${shown.join(', ')} and ${files.length - 2} more` : shown.join(', ')
}

function clauseList(clauses: readonly BrokenClause[] = []): string {
  const latest = clauses
    .map(({ at }) => at)
    .toSorted()
    .at(-1)
  if (latest === undefined) return '–'
  return `${clauses.map(({ clause }) => clause).join('; ')} (${latest})`
}
