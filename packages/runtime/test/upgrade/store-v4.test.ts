import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, test } from 'vitest'
import { calls, says, scripted } from '@skein/ai/testing'
import { memoryGovernanceKeys, verifyAudit } from '../../src/index.ts'
import { defineTool } from '../../src/definitions/define-tool.ts'
import { defineAgent } from '../../src/definitions/define-agent.ts'
import { definePrompt } from '../../src/definitions/define.ts'
import { createRuntime } from '../../src/runtime.ts'
import { sqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { z } from 'zod'

const folder = mkdtempSync(join(tmpdir(), 'skein-v4-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('a thread of a file with texts that are not packed goes on, and its audit log verifies', async () => {
  const path = join(folder, 'skein.db')
  const old = new DatabaseSync(path)
  old.exec(readFileSync(join(import.meta.dirname, '../fixtures/store-v4.sql'), 'utf8'))
  const [{ id } = {}] = old.prepare('SELECT id FROM threads').all()
  const written = old.prepare('SELECT json FROM events ORDER BY id').all()
  const lines = old.prepare('SELECT line FROM audit ORDER BY id').all()
  old.close()
  expect([written.length, lines.length]).toEqual([25, 6])

  const store = sqliteStore({ path })
  const threadId = String(id)
  expect((await store.events(threadId)).map(({ event }) => JSON.stringify(event))).toEqual(
    written.map(({ json }) => json),
  )
  expect((await store.audit(threadId)).map(({ line }) => line)).toEqual(
    lines.map(({ line }) => line),
  )
  const lookUp = defineTool({
    name: 'look_up',
    description: 'Looks up.',
    args: z.object({ id: z.number() }),
    risk: 'read_only',
    execute: (_, args) => args,
  })
  const model = scripted([calls('look_up', { id: 8 }), says('Still rot und grün.')])
  const prompt = definePrompt({
    name: 'helper',
    prompt: 'You look things up.',
    model,
    tools: [lookUp],
  })
  const helper = defineAgent({ name: 'helper', sideA: { prompt } })
  const keys = memoryGovernanceKeys({ seed: 'version 4' })
  const runtime = await createRuntime({
    agents: [helper],
    store,
    keys,
    secretKey: new Uint8Array(32),
  })
  await runtime.start()
  expect((await runtime.threads.run(threadId, 'And now?')).text).toBe('Still rot und grün.')
  expect(model.requests[0]?.messages.map(({ type }) => type)).toEqual([
    'user',
    'assistant',
    'tool_result',
    'assistant',
    'user',
  ])
  const audit = await runtime.threads.audit(threadId)
  expect(audit.lines.length).toBe(12)
  expect(await verifyAudit(audit, { keys: [audit.publicKey] })).toMatchObject({ ok: true })
  expect(await store.check()).toEqual([])
  await runtime.stop()
  await store.close()

  const now = new DatabaseSync(path)
  const types = now.prepare('SELECT DISTINCT typeof(json) AS type FROM events ORDER BY 1').all()
  now.close()
  expect(types.map(({ type }) => type)).toEqual(['blob', 'text'])
})
