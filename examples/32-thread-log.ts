/**
 * A thread as an append-only log: one line per turn, written once, read back whole; a writer that is behind is refused.
 *
 * Prints:
 *
 *     3 lines, 2 turns
 *     LOG_CONFLICT
 *     Hello. / Hi.
 */

// #region program
import { SkeinError } from '@skein/base'
import type { Turn } from '@skein/threads'
import { MemoryLogStorage, openThreadLog } from '@skein/threads/log'

const storage = new MemoryLogStorage()
const now = '2026-03-01T09:00:00Z'
const log = await openThreadLog(storage, {
  thread: { version: '2.0.0', thread_id: 't1', created_at: now, agents: {} },
})

const say = (content: string): Turn => ({
  turn_type: 'user',
  submitted_at: now,
  parts: [{ part_kind: 'user-prompt', content }],
})
await log.append(say('Hello.'), { expectedLength: 0 })
await log.append(say('Hi.'))

const lines = new TextDecoder()
  .decode(await storage.read())
  .trimEnd()
  .split('\n')
console.log(`${lines.length} lines, ${log.length} turns`)

try {
  await log.append(say('Too late.'), { expectedLength: 1 })
} catch (error) {
  console.log(SkeinError.is(error) ? error.code : error)
}

const { turns } = (await openThreadLog(storage)).thread()
console.log(
  turns
    .flatMap((turn) => (turn.turn_type === 'user' ? turn.parts : []))
    .map((part) => ('content' in part ? part.content : ''))
    .join(' / '),
)
// #endregion program
