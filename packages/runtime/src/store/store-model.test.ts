import { expect, test } from 'vitest'
import { expectModel, MODEL_ANSWERS } from '../../test/store-model.ts'
import { memoryStore } from './memory-store.ts'
import { sqliteStore } from './sqlite/sqlite-store.ts'
import type { Store } from './store.ts'

const opens: readonly (readonly [string, () => Store])[] = [
  ['memory', memoryStore],
  ['SQLite', () => sqliteStore({ path: ':memory:' })],
]

test.each(opens)(
  'the %s store does what the model does, refusals too',
  { timeout: 120_000 },
  async (_name, open) => {
    const answers = await expectModel(open, process.env['SKEIN_DEEP'] ? 2000 : 200)
    for (const code of MODEL_ANSWERS) expect(answers.get(code) ?? 0, code).toBeGreaterThan(2)
  },
)
