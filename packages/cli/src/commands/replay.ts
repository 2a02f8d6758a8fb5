import { existsSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import type { AgentChange, ReplayReport } from '@skein/evals'
import type { Registry } from '@skein/runtime'
import { STATE_FOLDER } from '../config/project-folder.ts'
import { examplesNotice, loadDefinitions } from '../connect/definitions.ts'
import { openRecordings } from '../connect/recordings.ts'
import {
  type Command,
  CommandError,
  defineCommand,
  ExitCode,
  JSON_OPTION,
  THREAD_OPERAND,
  usageError,
} from '../terminal/command.ts'

/** `skein replay` */
export const replayCommand: Command = defineCommand({
  operands: [THREAD_OPERAND],
  options: {
    store: {
      type: 'string',
      value: 'store',
      description: `A folder with skein.db, or the file. It is only read. Default: ${STATE_FOLDER}.`,
    },
    folder: {
      type: 'string',
      value: 'folder',
      description: 'Definitions to replay on. Default: as for `dev`.',
    },
    instructions: {
      type: 'string',
      value: 'text',
      description: 'Other instructions for the agent: the text, or a file that has it.',
    },
    model: {
      type: 'string',
      value: 'name',
      description: 'Another model that the definitions name.',
    },
    message: {
      type: 'string',
      value: 'text',
      description: 'Another text for the message before the step.',
    },
    from: {
      type: 'string',
      value: 'step',
      description: 'Requests before this step are not compared. Default 1.',
    },
    'max-requests': {
      type: 'string',
      value: 'count',
      description: 'The most requests to send. 0 sends none.',
    },
    'play-back': {
      type: 'boolean',
      description:
        'Runs the loop on recorded answers alone: the same definitions must make the same events.',
    },
    out: {
      type: 'string',
      value: 'file',
      description: 'Writes the replayed thread for `skein thread import`.',
    },
    markdown: { type: 'boolean', description: 'Prints the difference as Markdown.' },
    ...JSON_OPTION,
  },
  examples: [
    'skein replay 7f3a --instructions ./shorter.txt',
    'skein replay 7f3a --folder ./next --max-requests 0',
  ],
  async run({ values, operands: [text = ''], output }) {
    const evals = await import('@skein/evals')
    const notice = examplesNotice(values.folder)
    if (notice !== undefined) output.say(notice)
    const registry = await loadDefinitions(values.folder)
    const store = await openRecordings(values.store ?? STATE_FOLDER)
    try {
      const heads = await store.list({ idPart: text, limit: 2 })
      if (heads.length !== 1)
        throw new CommandError(
          heads.length === 0
            ? `There is no thread ${text} in this store.`
            : `Several threads fit ${text}.`,
          { code: 'THREAD_NOT_FOUND', hint: '`skein thread list` shows the ids.' },
        )
      const recorded = await evals.readRecording(store, heads[0]!.id)
      if (values['play-back']) {
        const report = await evals.playBack(recorded, { registry })
        if (values.json) output.json(report)
        else
          output.line(
            report.difference
              ? `event ${report.difference.seq} of ${report.difference.threadId}: ${report.difference.message}`
              : `${report.events} events, all the same.`,
          )
        return report.isSame ? ExitCode.Done : ExitCode.Failed
      }
      const change = changeOf(values, registry)
      const from = numberOf('from', values.from)
      const maxRequests = numberOf('max-requests', values['max-requests'])
      let lines: string | undefined
      const report = await evals.replay(recorded, {
        registry,
        ...(change && { change }),
        ...(values.message !== undefined && { message: values.message }),
        ...(from !== undefined && { from }),
        ...(maxRequests !== undefined && { maxRequests }),
        saveTo: {
          import: async (exported) => {
            lines = exported
            return { id: '' } as never // only the lines are used
          },
        },
      })
      if (values.out !== undefined && lines !== undefined) await writeFile(values.out, lines)
      const diff =
        lines === undefined ? undefined : evals.diffRuns(recorded, await evals.readExport(lines))
      if (values.json) output.json({ ...report, fork: undefined, diff })
      else {
        output.line(summaryOf(report))
        if (diff) output.line(values.markdown ? evals.diffMarkdown(diff) : evals.diffText(diff))
      }
      return report.first || report.end.type !== 'done' ? ExitCode.Failed : ExitCode.Done
    } finally {
      await store.close()
    }
  },
})

function summaryOf({ first, end, requests }: ReplayReport): string {
  const asked = `${requests.recorded} requests answered from the recording, ${requests.sent} sent.`
  if (!first) return `No difference. ${asked}`
  const place = `First difference at step ${first.step}: ${first.summary}.`
  switch (end.type) {
    case 'done':
      return `${place} ${asked}`
    case 'unknown_call':
      return `${place} The replay ended at a call of "${end.toolName}" that the recording does not know. ${asked}`
    case 'waits_for_approval':
      return `${place} The replay waits for the approval of "${end.toolName}". ${asked}`
    case 'failed':
      return `${place} The thread failed: ${end.message} ${asked}`
    case 'budget':
      return `${place} No more requests may be sent. ${asked}`
  }
}

function changeOf(
  { instructions, model }: { readonly instructions?: string; readonly model?: string },
  registry: Registry,
): AgentChange | undefined {
  if (instructions === undefined && model === undefined) return undefined
  const sides = [...registry.agents.values()].flatMap(({ a, b }) => (b ? [a, b] : [a]))
  const named = sides.flatMap(({ prompt }) => prompt.models).find(({ name }) => name === model)
  if (model !== undefined && !named)
    throw usageError(
      `No definition names the model "${model}".`,
      'Add it as a model or a fallback of a prompt.',
    )
  const isFile =
    instructions !== undefined && instructions.length < 1000 && existsSync(instructions)
  return {
    ...(instructions !== undefined && {
      instructions: isFile ? readFileSync(instructions, 'utf8').trim() : instructions,
    }),
    ...(named && { model: named.model }),
  }
}

function numberOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (!(value >= 0)) throw usageError(`--${name} takes a number, not "${text}".`)
  return value
}
