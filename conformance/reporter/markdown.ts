import type { Evaluation } from './report.ts'
import type { Spec } from './rows.ts'

/** What `.tmp/conformance.md` holds: one table of counts, then every row with the tests that prove it. */
export function toMarkdown(specs: readonly Spec[], { report, proofs }: Evaluation): string {
  const failing = new Set(Object.values(report.specs).flatMap((spec) => spec.failing))
  return [
    '# Conformance',
    '',
    'Written by `node scripts/conformance.ts`. A row is proved when a test whose title begins with its id passed',
    'and none failed. `conformance/README.md` explains the rules.',
    '',
    '| specification | version | rows | proved | failing | without a test |',
    '| --- | --- | ---: | ---: | ---: | ---: |',
    ...specs.map(({ spec, version }) => {
      const counts = report.specs[spec]!
      return `| ${spec} | ${version} | ${counts.rows} | ${counts.proved} | ${counts.failing.length} | ${counts.missing.length} |`
    }),
    '',
    rowTables(specs, 'proved by', (id) => proofs.get(id), {
      linkPrefix: '../',
      otherwise: (id) => (failing.has(id) ? '**failing**' : '–'),
    }),
  ].join('\n')
}

/** One section per specification: a table of its rows, each with its test files, of which two are shown. */
export function rowTables(
  specs: readonly Spec[],
  heading: string,
  filesOf: (id: string) => readonly string[] | undefined,
  {
    linkPrefix,
    otherwise = () => '–',
  }: { readonly linkPrefix: string; readonly otherwise?: (id: string) => string },
): string {
  const fileList = (files: readonly string[]): string => {
    const shown = files.slice(0, 2).map((file) => `[${file}](${linkPrefix}${file})`)
    return files.length > 2 ? `${shown.join(', ')} and ${files.length - 2} more` : shown.join(', ')
  }
  return specs
    .flatMap(({ spec, rows }) => [
      `## ${spec}`,
      '',
      `| row | § | what | ${heading} |`,
      '| --- | --- | --- | --- |',
      ...rows.map(({ id, section, title }) => {
        const files = filesOf(id)
        return `| ${id} | ${section} | ${title} | ${files ? fileList(files) : otherwise(id)} |`
      }),
      '',
    ])
    .join('\n')
}
