import type { Registry, StrandedReport } from '@skein/runtime'
import { examplesNotice, loadDefinitions } from '../connect/definitions.ts'
import { missingKeys } from '../connect/agent-models.ts'
import {
  type Command,
  defineCommand,
  ExitCode,
  FOLDER_OPERAND,
  JSON_OPTION,
} from '../terminal/command.ts'
import type { Output } from '../terminal/output.ts'
import { problemLine } from '../terminal/format.ts'
import { openRecordings } from '../connect/recordings.ts'
import { REPLAY_OPTIONS, replayed } from './check-replay.ts'

/** `skein check` */
export const check: Command = defineCommand({
  operands: [FOLDER_OPERAND],
  options: {
    strict: { type: 'boolean', description: 'Counts warnings as problems.' },
    'without-keys': {
      type: 'boolean',
      description: 'Does not ask for the API keys of models, e.g. in CI.',
    },
    against: {
      type: 'string',
      value: 'store',
      description:
        'Also lists the threads that a deploy of these definitions would strand: a folder with skein.db, or the file. It is only read.',
    },
    pinned: {
      type: 'boolean',
      description: 'With --against: the server pins sessions to the definitions they began with.',
    },
    replay: {
      type: 'string',
      value: 'store',
      description:
        'Also replays recorded threads on these definitions: a folder with skein.db, or the file. It is only read, and no tool runs.',
    },
    ...REPLAY_OPTIONS,
    ...JSON_OPTION,
  },
  examples: [
    'skein check ./next --against .skein',
    'skein check ./next --replay .skein --last 1000 --markdown',
  ],
  async run({ values, operands: [folder], output }) {
    const { DefinitionError } = await import('@skein/runtime')
    const definitions = await loadDefinitions(folder).catch((error: unknown) => {
      if (error instanceof DefinitionError) return error
      throw error
    })
    const notice = examplesNotice(folder)
    if (notice !== undefined) output.say(notice)
    const isBroken = definitions instanceof DefinitionError
    const problems = isBroken
      ? definitions.problems
      : values['without-keys']
        ? []
        : missingKeys(definitions)
    const warnings = isBroken ? [] : definitions.warnings
    const agents = isBroken ? [] : [...definitions.agents.keys()]
    const findings = values.strict ? [...problems, ...warnings] : problems
    const { against } = values
    const pin = values.pinned ? 'session' : 'none'
    // Definitions with problems cannot be deployed, so they are not compared with the running threads.
    const report =
      isBroken || against === undefined ? undefined : await compared(definitions, { against, pin })
    const { replay } = values
    const deploy =
      isBroken || replay === undefined
        ? undefined
        : await replayed(definitions, { ...values, replay }, output)
    if (values.json)
      output.json({ agents, problems: findings, warnings, stranded: report, replayed: deploy })
    else if (values.markdown && deploy)
      output.line((await import('@skein/evals')).deployMarkdown(deploy))
    else {
      for (const problem of findings) output.line(problemLine(problem))
      if (!values.strict) for (const one of warnings) output.say(`warning: ${problemLine(one)}`)
    }
    const count = findings.length === 1 ? '1 problem' : `${findings.length} problems`
    output.say(findings.length > 0 ? count : `No problems. Agents: ${agents.join(', ') || 'none'}.`)
    if (report) show(report, { output, isJson: values.json === true })
    if (deploy && !values.json && !values.markdown)
      output.line((await import('@skein/evals')).deployText(deploy))
    const isBad =
      findings.length > 0 || (report?.count ?? 0) > 0 || (deploy?.groups.length ?? 0) > 0
    if (isBad) return ExitCode.Failed
    return (deploy?.unchecked ?? 0) > 0 ? ExitCode.Limit : ExitCode.Done
  },
})

async function compared(
  registry: Registry,
  { against, pin }: { readonly against: string; readonly pin: 'none' | 'session' },
): Promise<StrandedReport> {
  const { findStranded } = await import('@skein/runtime')
  const store = await openRecordings(against)
  try {
    return await findStranded(registry, store, { pin })
  } finally {
    await store.close()
  }
}

/** Prints one line for each finding and, unless the output is JSON, the totals. */
function show(
  { findings, count, threads, unread, changed, idle }: StrandedReport,
  { output, isJson }: { readonly output: Output; readonly isJson: boolean },
): void {
  if (!isJson)
    for (const { threadId, agent, problem, message } of findings)
      output.line(`${threadId}: ${problem}: agent "${agent}": ${message}`)
  if (count > findings.length) output.say(`… and ${count - findings.length} more.`)
  const more = unread > 0 ? `; ${unread} more were not read` : ''
  output.say(`${threads} threads read${more}: ${count === 0 ? 'none' : count} would be stranded.`)
  if (changed > 0)
    output.say(`${changed} sessions began with other definitions and would continue.`)
  for (const [agent, number] of Object.entries(idle))
    output.say(`${number} idle threads of "${agent}", which is gone, wait when they get a message.`)
}
