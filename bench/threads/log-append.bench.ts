import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Turn } from '@skein/threads'
import { openThreadLogFile } from '@skein/threads/log/node'
import type { Bench, Contender } from '../runner/bench.ts'
import { measured } from '../runner/bench.ts'

const appends = 1_000

/** Appends to a log that has this many messages already. */
function logOf(messages: number): Contender {
  return {
    async prepare() {
      const path = join(mkdtempSync(join(tmpdir(), 'skein-bench-')), 'thread.ndjson')
      const time = '2026-01-01T00:00:00Z'
      const log = await openThreadLogFile(path, {
        thread: { version: '2.0.0', thread_id: 't', created_at: time, agents: {} },
      })
      const turn: Turn = {
        turn_type: 'user',
        submitted_at: time,
        parts: [
          {
            part_kind: 'user-prompt',
            content: 'A sentence of ordinary length, as people write them.',
          },
        ],
      }
      for (let index = 0; index < messages; index++) await log.append(turn)
      return async () => {
        const start = performance.now()
        for (let index = 0; index < appends; index++) await log.append(turn)
        return measured(((performance.now() - start) * 1000) / appends)
      }
    },
  }
}

const bench: Bench = {
  title: 'append one turn to a log file, no sync (goal: 50 µs, independent of length)',
  baseline: 'log of 100 messages',
  measure: 'returned',
  unit: 'µs',
  contenders: {
    'log of 100 messages': logOf(100),
    'log of 100,000 messages': logOf(100_000),
  },
}

export default bench
