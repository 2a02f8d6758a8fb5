import type { BenchResult, ContenderResult } from './run-bench.ts'

/** One table per bench; ratios first, because they travel from machine to machine and times do not. */
export function toMarkdown(results: readonly BenchResult[], machine: string): string {
  return [
    ...results.flatMap((result) => [
      `### ${result.title}`,
      '',
      `| ${result.id} | ratio | median ${result.unit} (${result.measure}) | middle half |${result.amount ? ' rate |' : ''}`,
      `| --- | ---: | ---: | ---: |${result.amount ? ' ---: |' : ''}`,
      ...result.contenders.map((contender) => tableRow(result, contender)),
      '',
    ]),
    `Measured on ${machine}. Ratios are medians against the baseline in the same run.`,
    '',
  ].join('\n')
}

function tableRow({ baseline, amount }: BenchResult, contender: ContenderResult): string {
  const { name, ratio, median, low, high } = contender
  const label = name === baseline ? `${name} (baseline)` : name
  const rate = amount ? ` ${figures((amount.value / median) * 1000)} ${amount.unit}/s |` : ''
  return `| ${label} | ${ratio.toFixed(2)}x | ${figures(median)} | ${figures(low)} – ${figures(high)} |${rate}`
}

/** Three figures are more than the noise allows. */
export function figures(value: number): string {
  if (!Number.isFinite(value)) return '–'
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3)
}

/** The whole page of results: what was measured when and where, then a table for each bench. */
export function toResultsPage(
  results: readonly BenchResult[],
  machine: string,
  missing: readonly string[] = [],
): string {
  const loads = results.flatMap(({ load }) => (load === undefined ? [] : [load]))
  const behind = results.flatMap(({ id, contenders }) => {
    const ours = contenders.find(({ name }) => isOurs(name))
    const better = contenders.filter(
      ({ name, ratio }) => ours && !isOurs(name) && ratio < ours.ratio,
    )
    return ours && better.length > 0
      ? [
          `| ${id} | ${ours.ratio.toFixed(2)}x | ${better.map(({ name, ratio }) => `${name} ${ratio.toFixed(2)}x`).join(', ')} |`,
        ]
      : []
  })
  return [
    `Measured on ${machine}; load of the machine while it ran: ${figures(Math.min(...loads))} to ${figures(Math.max(...loads))}.`,
    ...(missing.length > 0 ? ['', `Not measured in this run: ${missing.join(', ')}.`] : []),
    '',
    '### Where Skein needs more than another',
    '',
    '| bench | skein | less |',
    '| --- | ---: | --- |',
    ...behind,
    '',
    toMarkdown(results, machine)
      .replace(/\nMeasured on [^\n]*\n$/, '')
      .trimEnd(),
    '',
  ].join('\n')
}

/** Whether a contender is what we publish, in its ordinary configuration. */
export function isOurs(name: string): boolean {
  return name === 'skein' || /^@skein\/[a-z]+$/.test(name)
}
