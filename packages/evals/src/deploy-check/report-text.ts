import type { DifferenceKind } from '../replay/replay-report.ts'
import type { DeployReport } from './deploy-report.ts'

const headings: { readonly [Kind in DifferenceKind]: string } = {
  instructions: 'instructions changed',
  tools: 'tools changed',
  model: 'model changed',
  settings: 'settings changed',
  history: 'history changed',
  arguments: 'arguments are read differently',
  asks_approval: 'would now ask for approval',
  asks_no_approval: 'would no longer ask for approval',
  fails: 'would fail',
  events: 'other differences',
}

/** The report for a terminal. */
export function deployText(report: DeployReport): string {
  const { threads, same, groups, unchecked, requests } = report
  const lines = [
    `${threads} threads: ${same} the same, ${threads - same - unchecked} differ, ${unchecked} not checked.${cutText(report)}`,
  ]
  for (const { kind, summary, count, examples } of groups)
    lines.push(
      `${String(count).padStart(6)}  ${headings[kind]}: ${summary} (${examples.slice(0, 3).join(', ')})`,
    )
  lines.push(
    `${requests.recorded} requests answered from recordings, ${requests.sent} sent${costOf(report)}.`,
  )
  return lines.join('\n')
}

/** The report for a pull request. */
export function deployMarkdown(report: DeployReport): string {
  const { threads, same, groups, unchecked, requests } = report
  const lines = [
    '## Recorded threads on the new definitions',
    '',
    `**${same} of ${threads}** threads stay the same.${unchecked > 0 ? ` ${unchecked} were not checked.` : ''}${cutText(report)}`,
    '',
  ]
  if (groups.length > 0) {
    lines.push('| threads | first difference | what | examples |', '| ---: | --- | --- | --- |')
    for (const { kind, summary, count, examples } of groups)
      lines.push(
        `| ${count} | ${headings[kind]} | ${cell(summary)} | ${examples
          .slice(0, 3)
          .map((id) => `\`${id}\``)
          .join(' ')} |`,
      )
    lines.push('')
  }
  lines.push(
    `${requests.recorded} requests answered from recordings, ${requests.sent} sent${costOf(report)}. None of your tools ran.`,
  )
  return lines.join('\n')
}

function cutText({ cut }: DeployReport): string {
  return cut > 0 ? ` ${cut} ended early: the budget was over after their first difference.` : ''
}

function costOf({ requests, spent }: DeployReport): string {
  if (requests.sent === 0) return ''
  const tokens = `${spent.inputTokens + spent.outputTokens} tokens`
  return spent.costUsd === null ? `, ${tokens}` : `, ${tokens}, $${spent.costUsd.toFixed(4)}`
}

/** A text inside a cell of a table. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ')
}
