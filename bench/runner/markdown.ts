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
