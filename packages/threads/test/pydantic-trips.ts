import { manualClock, sequentialIds } from '@skein/base'
import { expect } from 'vitest'
import { safeParseThread, stringifyThread, type Thread } from '@skein/threads'
import { createConfigStore, fromPydanticAI, toPydanticAIText } from '@skein/threads/pydantic-ai'
import type { FromPydanticOptions } from '../src/convert/pydantic-ai/import.ts'
import type { ToPydanticOptions } from '../src/convert/pydantic-ai/export.ts'

/** The same ids and times in every test. */
export const fixed: FromPydanticOptions = {
  agentId: 'ada',
  threadId: 't',
  clock: manualClock(Date.UTC(2026, 0, 1)),
  ids: sequentialIds('id'),
}

/** Text → thread → thread text → thread → text. */
export function thereAndBack(source: string, options: ToPydanticOptions = {}): string {
  const { value, configs } = fromPydanticAI(source, fixed)
  const reading = safeParseThread(stringifyThread(value))
  const stored = (reading.ok ? reading.thread : reading.document) as Thread
  return toPydanticAIText(stored, { configs, ...options }).value
}

/** A history that is imported run by run gives the same text as when it is imported whole. */
export function expectRunsToJoin(source: string): void {
  const configs = createConfigStore()
  let thread: Thread | undefined
  for (const run of splitRuns(source))
    thread = fromPydanticAI(run, { ...fixed, configs, thread }).value
  expect(thread ? toPydanticAIText(thread, { configs }).value : '[]').toBe(source)
  const whole = fromPydanticAI(source, fixed).value
  if (thread) expect(thread.turns.length).toBe(whole.turns.length)
}

/** The texts of consecutive messages with the same run_id; messages without one stand alone. */
function splitRuns(source: string): string[] {
  const runs: { id: unknown; texts: string[] }[] = []
  const messages = JSON.parse(source) as { run_id?: string | null }[]
  const texts = topLevelItems(source)
  messages.forEach((message, index) => {
    const last = runs.at(-1)
    if (last && typeof message.run_id === 'string' && last.id === message.run_id)
      last.texts.push(texts[index]!)
    else runs.push({ id: message.run_id, texts: [texts[index]!] })
  })
  // Without run ids only prompts mark a run, so everything up to the next prompt belongs together.
  return runs.some(({ id }) => typeof id !== 'string')
    ? [source].filter((text) => text !== '[]')
    : runs.map(({ texts: items }) => `[${items.join(',')}]`)
}

function topLevelItems(source: string): string[] {
  const items: string[] = []
  let depth = 0
  let start = 1
  let quoted = false
  for (let index = 0; index < source.length; index++) {
    const character = source[index]
    if (quoted) {
      if (character === '\\') index++
      else if (character === '"') quoted = false
    } else if (character === '"') quoted = true
    else if (character === '[' || character === '{') depth++
    else if (character === ']' || character === '}') depth--
    if (!quoted && ((depth === 1 && character === ',') || depth === 0)) {
      items.push(source.slice(start, index))
      start = index + 1
    }
  }
  return items
}
