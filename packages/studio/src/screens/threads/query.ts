import type { ThreadInfo } from '@skein/runtime'

/** A search over the list of threads. */
export interface ThreadSearch {
  readonly words: readonly string[]
  readonly agent?: string
  readonly status?: string
  readonly tool?: string
  readonly costAbove?: number
  readonly costBelow?: number
  readonly after?: number
  readonly before?: number
}

/** Parses a search: words, and `agent:`, `status:`, `tool:`, `cost>`, `cost<`, `after:`, `before:`. */
export function parseQuery(query: string): ThreadSearch {
  const search: { -readonly [K in keyof ThreadSearch]: ThreadSearch[K] } = { words: [] }
  const words: string[] = []
  for (const part of query.split(/\s+/).filter(Boolean)) {
    const [, name = '', sign = '', value = ''] = /^(\w+)([:<>])(.+)$/.exec(part) ?? []
    const key = `${name.toLowerCase()}${sign}`
    const number = Number(value)
    const time = Date.parse(value)
    if (key === 'agent:') search.agent = value.toLowerCase()
    else if (key === 'status:') search.status = value.toLowerCase()
    else if (key === 'tool:') search.tool = value
    else if (key === 'cost>' && Number.isFinite(number)) search.costAbove = number
    else if (key === 'cost<' && Number.isFinite(number)) search.costBelow = number
    else if (key === 'after:' && !Number.isNaN(time)) search.after = time
    else if (key === 'before:' && !Number.isNaN(time)) search.before = time
    else words.push(part.toLowerCase())
  }
  return { ...search, words }
}

/** Whether a thread matches the search. `tool` is not checked here: the server filters by tool. */
export function matchesQuery(thread: ThreadInfo, search: ThreadSearch): boolean {
  const { words, agent, status, costAbove, costBelow, after, before } = search
  const { costUsd } = thread.tree
  const updated = Date.parse(thread.updatedAt)
  const text = [thread.title, thread.firstWords, thread.agent, thread.id, ...thread.tags]
    .join('\n')
    .toLowerCase()
  return (
    words.every((word) => text.includes(word)) &&
    (agent === undefined || thread.agent.toLowerCase().includes(agent)) &&
    (status === undefined || isIn(thread, status)) &&
    (costAbove === undefined || (costUsd !== null && costUsd > costAbove)) &&
    (costBelow === undefined || (costUsd !== null && costUsd < costBelow)) &&
    (after === undefined || updated >= after) &&
    (before === undefined || updated < before)
  )
}

function isIn({ lifecycle, tree: { waiting } }: ThreadInfo, status: string): boolean {
  if ('waiting'.startsWith(status)) return waiting > 0 || lifecycle === 'waiting'
  return lifecycle.startsWith(status)
}
