import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { says, scripted } from '@skein/ai/testing'
import { createRuntime } from '../../src/index.ts'
import { defineAgent } from '../../src/definitions/define-agent.ts'
import { definePrompt } from '../../src/definitions/define.ts'
import { sqliteStore } from '../../src/store/sqlite/sqlite-store.ts'

const agent = defineAgent({
  name: 'helper',
  sideA: {
    prompt: definePrompt({ name: 'helper', prompt: 'Help.', model: scripted(() => says('Yes.')) }),
  },
})

test('nothing in the file names the owner or the id of the client after an erasure', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-erased-'))
  const store = sqliteStore({ path: join(folder, 'skein.db') })
  const runtime = await createRuntime({
    agents: [agent],
    store,
    secretKey: new Uint8Array(32),
  })
  await runtime.start()
  try {
    const { threads } = runtime
    const [owner, clientId] = ['ann.private@example.org', 'order-of-ann-4711']
    const made = await threads.create({ agent: 'helper', owner, clientId, message: 'Hello' })
    await threads.settled(made.id)
    await threads.terminate(made.id, { by: owner })
    const files = (): string =>
      readdirSync(folder)
        .map((file) => readFileSync(join(folder, file), 'latin1'))
        .join('')
    expect(files()).toContain(owner)
    expect(files()).toContain(clientId)
    await threads.erase(made.id, { by: owner })
    expect(await threads.get(made.id)).toMatchObject({ owner: null, clientId: null })
    const events = (await threads.events(made.id)).map(({ event }) => event)
    expect(events.at(-1)).toMatchObject({ type: 'thread_erased' })
    expect(JSON.stringify(events)).not.toContain(owner)
    expect(files()).not.toContain(owner)
    expect(files()).not.toContain(clientId)
  } finally {
    await runtime.stop({ graceMs: 0 })
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  }
})

test('who erased the thread of another person stays in the log', async () => {
  const runtime = await createRuntime({ agents: [agent] })
  await runtime.start()
  try {
    const { threads } = runtime
    const { id } = await threads.create({ agent: 'helper', owner: 'ann', message: 'Hello' })
    await threads.settled(id)
    await threads.erase(id, { by: 'operator' })
    const last = (await threads.events(id)).at(-1)
    expect(last?.event).toMatchObject({ type: 'thread_erased', by: 'operator' })
  } finally {
    await runtime.stop({ graceMs: 0 })
  }
})
