import type { Evaluation } from './report.ts'
import type { Spec } from './rows.ts'

/** The conformance page of the docs: one table of counts, then every row with the tests that prove it. */
export function toMarkdown(specs: readonly Spec[], { report, proofs }: Evaluation): string {
  return [
    '# Conformance',
    '',
    'Written by `npm run conformance`; do not edit. A row is proved when a test whose title begins with',
    'its id passed and none failed. `conformance/README.md` explains the rules.',
    '',
    '| specification | version | rows | proved | failing | without a test |',
    '| --- | --- | ---: | ---: | ---: | ---: |',
    ...specs.map(({ spec, version }) => {
      const { rows, proved, failing, missing } = report.specs[spec]!
      return `| ${spec} | ${version} | ${rows} | ${proved} | ${failing.length} | ${missing.length} |`
    }),
    ...specs.flatMap(({ spec, rows }) => [
      '',
      `## ${spec}`,
      '',
      '| row | § | what | proved by |',
      '| --- | --- | --- | --- |',
      ...rows.map(({ id, section, title }) => {
        const state = report.specs[spec]!.failing.includes(id) ? '**failing**' : '–'
        return `| ${id} | ${section} | ${title} | ${fileList(proofs.get(id)) ?? state} |`
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
