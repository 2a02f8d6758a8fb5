import { type Tool, withToolContext } from '@skein/ai'
import type { JsonObject } from '@skein/base'
import type { KernelState } from '../state/kernel-state.ts'
import { childRegistry } from '../thread/facade.ts'

/** How many subagents the note to a model names. The model lists the others with `subagent_list`. */
export const MOST_NOTED = 20
/** How many subagents one call of `subagent_list` returns. */
const PAGE = 50
/** Names and status texts come from models, so the length of a line is limited. */
const MOST_CHARS = 300

type Children = Pick<KernelState, 'children'>
type Entry = ReturnType<typeof childRegistry>[number]

/**
 * Returns the text that tells a model about its subagents; undefined if there are none. It is sent with every
 * request, so it names at most `MOST_NOTED`: those that work or wait for a person, then those created last.
 */
export function childNote(state: Children): string | undefined {
  const all = childRegistry(state)
  if (all.length === 0) return undefined
  const heading = '[runtime] Subagents of this thread:'
  if (all.length <= MOST_NOTED) return [heading, ...all.map(lineOf)].join('\n')
  const active = all.filter(({ reference }) => isActive(state, reference))
  const inOrder = new Set([...active.toReversed(), ...all.toReversed()])
  const names = new Set([...inOrder].slice(0, MOST_NOTED))
  return [
    `${heading} ${all.length} (${countsOf(state, all)}). These are ${MOST_NOTED} of them, the active ones before others; subagent_list lists all.`,
    ...all.filter((entry) => names.has(entry)).map(lineOf),
  ].join('\n')
}

/** Whether a model has more subagents than the note names, so that it needs `subagent_list`. */
export function hasUnnotedChildren(state: Children): boolean {
  return state.children.size > MOST_NOTED && childRegistry(state).length > MOST_NOTED
}

/** The tool that lists subagents page by page. It reads the state of its thread and changes nothing. */
export function listTool(state: () => Children): Tool {
  return withToolContext({
    name: 'subagent_list',
    description: `Lists the subagents of this thread, ${PAGE} at a time, in the order in which they were created.`,
    parameters: {
      type: 'object',
      properties: {
        from: { type: 'integer', minimum: 1, description: 'The number of the first to list.' },
        status: {
          type: 'string',
          enum: ['running', 'awaiting_human', 'idle'],
          description: 'Only subagents with this status.',
        },
      },
    },
    run: (args: JsonObject) => page(state(), args),
  } as Tool) // `Tool` declares the parameters of `run` as `never`
}

function page(state: Children, { from = 1, status }: JsonObject): string {
  if (typeof from !== 'number' || !Number.isInteger(from) || from < 1)
    throw new Error('"from" is the number of the first subagent to list: 1 or more.')
  const all = childRegistry(state).filter(
    ({ reference }) => status === undefined || lifecycleOf(state, reference) === status,
  )
  const lines = all.slice(from - 1, from - 1 + PAGE).map(lineOf)
  if (lines.length === 0) return `There are ${all.length} subagents, none from number ${from} on.`
  const last = from + lines.length - 1
  const more = last < all.length ? [`Call again with from: ${last + 1} for the next.`] : []
  return [`Subagents ${from} to ${last} of ${all.length}:`, ...lines, ...more].join('\n')
}

function lineOf({ reference, name, threadName, status, resumable }: Entry): string {
  const label = threadName === undefined ? name : `${name} "${threadName}"`
  const line = `- ${label} (reference: ${reference}): ${status}${resumable ? '' : ', not resumable'}`
  return line.length <= MOST_CHARS ? line : `${line.slice(0, MOST_CHARS - 1)}…`
}

function countsOf(state: Children, entries: readonly Entry[]): string {
  const counts = new Map<string, number>()
  for (const { reference } of entries) {
    const lifecycle = lifecycleOf(state, reference)
    counts.set(lifecycle, (counts.get(lifecycle) ?? 0) + 1)
  }
  return Array.from(counts, ([lifecycle, count]) => `${lifecycle} ${count}`).join(', ')
}

/** The state of a subagent without its own words. A resumable one that has finished waits, so it is idle. */
function lifecycleOf({ children }: Children, reference: string): string {
  const { lifecycle = 'terminated', created } = children.get(reference) ?? {}
  return lifecycle === 'completed' && created?.isResumable ? 'idle' : lifecycle
}

function isActive(state: Children, reference: string): boolean {
  const lifecycle = lifecycleOf(state, reference)
  return lifecycle === 'running' || lifecycle === 'awaiting_human'
}
