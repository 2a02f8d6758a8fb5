import type { DeployReport } from '@skein/evals'
import type { Registry } from '@skein/runtime'
import { openRecordings } from '../connect/recordings.ts'
import { type Switch, type TextOption, usageError } from '../terminal/command.ts'
import type { Output } from '../terminal/output.ts'

type TextName =
  'last' | 'agent' | 'since' | 'concurrency' | 'max-cost' | 'max-requests' | 'progress'

/** The flags of `check` that belong to `--replay`. */
export const REPLAY_OPTIONS: { readonly [Name in TextName]: TextOption } & {
  readonly markdown: Switch
} = {
  last: {
    type: 'string',
    value: 'count',
    description: 'With --replay: how many threads, those that were active last. Default 100.',
  },
  agent: {
    type: 'string',
    value: 'name',
    description: 'With --replay: only threads of this agent.',
  },
  since: {
    type: 'string',
    value: 'time',
    description: 'With --replay: only threads that were active since this time, e.g. 2026-01-31.',
  },
  concurrency: {
    type: 'string',
    value: 'count',
    description: 'With --replay: threads at the same time. Default 4.',
  },
  'max-cost': {
    type: 'string',
    value: 'dollars',
    description:
      'With --replay: sends no more requests when they have cost this much. Every model needs a price.',
  },
  'max-requests': {
    type: 'string',
    value: 'count',
    description: 'With --replay: the most requests to send. 0 sends none.',
  },
  progress: {
    type: 'string',
    value: 'file',
    description:
      'With --replay: keeps what was done here, so that a check which was killed continues.',
  },
  markdown: {
    type: 'boolean',
    description: 'With --replay: prints the result as Markdown, for a pull request.',
  },
}

type Values = { readonly [Name in TextName]?: string | undefined } & { readonly replay: string }

/** Replays recorded threads on new definitions. */
export async function replayed(
  registry: Registry,
  values: Values,
  output: Output,
): Promise<DeployReport> {
  const { deployCheck } = await import('@skein/evals')
  const { replay, agent, progress, since } = values
  const store = await openRecordings(replay)
  const sinceMs = since === undefined ? undefined : Date.parse(since)
  if (Number.isNaN(sinceMs))
    throw usageError(`--since takes a time, not "${since}".`, 'E.g. 2026-01-31.')
  try {
    return await deployCheck({
      store,
      registry,
      ...given({
        agent,
        progress,
        since: sinceMs,
        last: countOf(values, 'last'),
        concurrency: countOf(values, 'concurrency'),
        maxCostUsd: countOf(values, 'max-cost'),
        maxRequests: countOf(values, 'max-requests'),
      }),
      onThread: (_thread, done, total) => output.status(`${done} of ${total} threads`, done === 1),
    })
  } finally {
    await store.close()
  }
}

function countOf(values: Values, name: TextName): number | undefined {
  const text = values[name]
  if (text === undefined) return undefined
  const count = Number(text)
  if (!(count >= 0)) throw usageError(`--${name} takes a number, not "${text}".`)
  return count
}

/** The options that the user gave. */
function given<T extends object>(options: T): { [Name in keyof T]?: NonNullable<T[Name]> } {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [Name in keyof T]?: NonNullable<T[Name]> } // the same names
}
