import { type ChildProcess, spawn } from 'node:child_process'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createClient } from '@skein/server/client'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { newSchema, noPostgres, startPostgres, type TestPostgres } from './server.ts'

const words = Array.from({ length: 60 }, (_, index) => `w${index}`).join(' ')
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

describe.skipIf(noPostgres !== undefined)('nodes in processes of their own', () => {
  let server: TestPostgres
  const children: ChildProcess[] = []
  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(() => server.stop(), 60_000)
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
  })

  async function start(name: string, schema: string) {
    const port = await freePort()
    const file = join(import.meta.dirname, 'cluster-worker.ts')
    const args = ['--conditions=@skein/source', file, server.url, schema, name, String(port)]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    children.push(child)
    await new Promise<void>((resolve, reject) => {
      child.stdout.once('data', () => resolve())
      child.once('exit', (code) => reject(new Error(`The node ${name} ended with ${code}.`)))
    })
    return { child, client: createClient({ url: `http://127.0.0.1:${port}` }) }
  }
  type Started = Awaited<ReturnType<typeof start>>

  async function read({ client }: Started, id: string) {
    const events: { id: string; type: string; text: string; lateMs: number }[] = []
    for await (const { id: at, event } of client.stream(id, { untilParked: true })) {
      const text = event.type === 'text_delta' ? event.text : ''
      const lateMs = text === '' ? 0 : Date.now() - Date.parse(event.at)
      events.push({ id: at, type: event.type, text, lateMs })
    }
    return events
  }

  type Read = Awaited<ReturnType<typeof read>>
  const saidAfter = (events: Read, type: string): string =>
    events
      .slice(events.findLastIndex((event) => event.type === type) + 1)
      .map(({ text }) => text)
      .join('')

  async function checkStored({ client }: Started, id: string, events: Read): Promise<void> {
    const log = await client.threads.events(id, { limit: 1000 })
    const stored = events.filter(({ type }) => type !== 'text_delta')
    expect(stored.map((event) => Math.trunc(Number(event.id)))).toEqual(log.map(({ seq }) => seq))
  }

  test('deltas, log and stop reach the other process', { timeout: 60_000 }, async () => {
    const schema = newSchema()
    const a = await start('a', schema)
    const b = await start('b', schema)
    const { id } = await a.client.threads.create({ agent: 'talker' })
    const reading = [read(a, id), read(b, id), read(b, id)]
    await sleep(300)
    await a.client.threads.send(id, 'hi')
    const late: number[] = []
    for (const events of await Promise.all(reading)) {
      await checkStored(b, id, events)
      expect(saidAfter(events, 'step_start')).toBe(words)
      late.push(...events.flatMap(({ text, lateMs }) => (text === '' ? [] : [lateMs])))
    }
    late.sort((x, y) => x - y)
    const at = (part: number): number => late[Math.floor(late.length * part)] ?? 0
    process.stdout.write(`deltas over two processes: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms\n`)
    // The model goes on for a minute unless it is stopped.
    await a.client.threads.send(id, 'more')
    await sleep(250)
    await b.client.threads.stop(id)
    await expect
      .poll(async () => (await b.client.threads.get(id)).lifecycle, { timeout: 10_000 })
      .toBe('stopped')
  })

  test(
    'kill -9 of the node that works: the other goes on, readers lose nothing',
    { timeout: 60_000 },
    async () => {
      const schema = newSchema()
      const a = await start('a', schema)
      const b = await start('b', schema)
      const { id } = await a.client.threads.create({ agent: 'talker', message: 'hi' })
      const reading = [read(b, id), read(b, id)]
      await sleep(300)
      a.child.kill('SIGKILL')
      const diedAt = Date.now()
      for (const events of await Promise.all(reading)) {
        await checkStored(b, id, events)
        expect(events.map(({ type }) => type)).toContain('step_reset')
        expect(saidAfter(events, 'step_reset')).toBe(words)
      }
      expect(Date.now() - diedAt).toBeLessThan(10_000)
    },
  )
})
