import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { says, scripted } from '@skein/ai/testing'
import { deployCheck } from '@skein/evals'
import { createRegistry, createRuntime, defineAgent, memoryStore } from '@skein/runtime'
import { expect, onTestFinished, test } from 'vitest'

/** A thread that can continue, and a check of it that has a progress file. */
async function checkedThread(answer = 'Hello!') {
  const folder = mkdtempSync(join(tmpdir(), 'skein-progress-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const progress = join(folder, 'progress')
  const agent = (model: ReturnType<typeof scripted>, instructions: string) =>
    defineAgent({ name: 'greeter', instructions, model })
  const store = memoryStore()
  const runtime = await createRuntime({
    agents: [
      agent(
        scripted(() => says('Hello.')),
        'You greet.',
      ),
    ],
    store,
  })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'greeter' })
  const run = async (text: string) => {
    await runtime.threads.run(id, text)
    await runtime.idle()
  }
  await run('Hi')
  const model = scripted(() => says(answer))
  const registry = createRegistry({ agents: [agent(model, 'You greet warmly.')] })
  return { progress, run, model, check: () => deployCheck({ store, registry, progress }) }
}

test('a last line without its end is written again, and what follows is read', async () => {
  const { progress, check, model } = await checkedThread()
  await check()
  const whole = readFileSync(progress, 'utf8')
  writeFileSync(progress, whole.slice(0, -1))
  await check()
  expect(readFileSync(progress, 'utf8')).toBe(whole)
  await check()
  expect(readFileSync(progress, 'utf8')).toBe(whole)
  expect(model.requests).toHaveLength(1)
})

test('an answer may have any character', async () => {
  const { progress, check, model } = await checkedThread('Hello\u2028you\u2029!')
  await check()
  const whole = readFileSync(progress, 'utf8')
  await check()
  expect(readFileSync(progress, 'utf8')).toBe(whole)
  expect(model.requests).toHaveLength(1)
})

test('a thread that has continued is checked again, and its paid answers are used', async () => {
  const { check, run, model } = await checkedThread()
  expect((await check()).requests.sent).toBe(1)
  await run('Hi again')
  expect((await check()).requests.sent).toBe(2)
  expect(model.requests).toHaveLength(2)
  await check()
  expect(model.requests).toHaveLength(2)
})

test('a file that is no progress file is left as it is', async () => {
  const { progress, check } = await checkedThread()
  writeFileSync(progress, 'A letter.\nMore of it.\n')
  await expect(check()).rejects.toMatchObject({ code: 'INPUT_INVALID' })
  expect(readFileSync(progress, 'utf8')).toBe('A letter.\nMore of it.\n')
})
